//! Fields that take their parts, or refuse them.

use sapwood_aggregate::{Disaggregation, Mismatches, Outcome, QueryError};

use super::{described, parts_of, shares};

#[test]
fn what_does_not_fit_is_refused_before_anything_is_changed() {
    let error = shares(&described("n:u8", 511), &[&[0], &[0]]).expect_err("256 does not fit");
    assert_eq!(
        error.to_string(),
        "the parts of 1 objects do not fit; the first by key: key 00: field `n` cannot hold 256. Nothing was changed: spread less, or over more objects, or widen the field"
    );
    // The unit that is left over goes to the lesser key, where it fits, or does not.
    let adds = described("n:u8", 3).adding();
    assert!(shares(&adds, &[&[253], &[254]]).is_ok());
    let error = shares(&adds, &[&[254], &[253]]).expect_err("256 does not fit");
    assert!(matches!(error, QueryError::Unfit { count: 1, .. }), "{error:?}");
    let error = shares(&described("n:u8", -1).adding(), &[&[0]]).expect_err("-1 does not fit");
    assert!(error.to_string().contains("cannot hold -1"), "{error}");
    let most = i128::MAX.to_string();
    let error = shares(&described("n:decimal", 1).adding(), &[most.as_bytes()]);
    assert!(error.expect_err("2^127").to_string().contains("128 bits"));
}

#[test]
fn objects_without_the_field_are_refused_or_skipped_and_counted() {
    let asked = described("n:u16le, w:u16le@2?0", 9).in_proportion_to("w").adding();
    let values: [&[u8]; 4] = [&[1, 0, 2, 0], &[1, 0, 2], &[5, 0, 0, 0], &[3, 0, 1, 0]];
    let error = shares(&asked, &values).expect_err("two have no weight").to_string();
    assert!(error.starts_with("2 of 4") && error.contains("needs 4 bytes"), "{error}");
    let skipping = asked.mismatches(Mismatches::Skip);
    let shares = shares(&skipping, &values).expect("the others");
    assert_eq!(parts_of(&shares).into_values().collect::<Vec<_>>(), [6, 3]);
    assert_eq!((shares.tally().matched, shares.tally().mismatched), (2, 2));
    assert_eq!(shares.sum_before(), Ok(4.into()));
}

#[test]
fn what_stands_for_missing_is_set_and_never_made() {
    let missing = i16::MIN.to_le_bytes();
    let five = 5_i16.to_le_bytes();
    let set = described("n:i16le?-32768", 4);
    let found = shares(&set, &[&missing, &five]).expect("both can be set");
    assert_eq!((found.sum_before(), found.tally().missing), (Ok(5.into()), 1));
    let adds = set.clone().adding();
    let error = shares(&adds, &[&missing, &five]).expect_err("nothing to add to").to_string();
    assert!(error.contains("field `n` is missing"), "{error}");
    for asked in
        [described("n:i16le?4", 4), described("n:decimal?'4'", 4), described("n:u8?x'04'", 4)]
    {
        let value: &[u8] =
            if asked.clone().compile().expect("one").changes_in_place() { &[9, 9] } else { b"9" };
        let error = shares(&asked, &[value]).expect_err("it would be missing").to_string();
        assert!(error.contains("would become 4, which stands for missing"), "{error}");
        assert!(shares(&asked.adding(), &[value]).is_ok());
    }
    let error = shares(&described("n:i16le?7", 2).adding(), &[&five]).expect_err("7 is missing");
    assert!(matches!(error, QueryError::Unfit { count: 1, .. }), "{error:?}");
}

#[test]
fn floats_are_changed_where_nothing_is_rounded() {
    let change = |form: &str, before: f64, total: i128| {
        let value = match form {
            "f32le" => (before as f32).to_le_bytes().to_vec(),
            "f64ord" => {
                let bits = before.to_bits();
                let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                bits.to_be_bytes().to_vec()
            }
            _ => before.to_le_bytes().to_vec(),
        };
        let asked = described(&format!("n:{form}"), total).adding();
        shares(&asked, &[&value])?;
        let by = asked.compile()?;
        let mut changed = value;
        let change = by.change(&mut changed, total).expect("as planned");
        assert_eq!(by.change(&mut changed, -total).map(|change| change.after), Ok(change.before));
        Ok::<_, QueryError>(change.after)
    };
    let float = sapwood_aggregate::Amount::Float;
    assert_eq!(change("f64le", 0.5, 3), Ok(float(3.5)));
    assert_eq!(change("f64ord", -0.5, 3), Ok(float(2.5)));
    assert_eq!(change("f32le", 16_777_215.0, 1), Ok(float(16_777_216.0)));
    assert_eq!(change("f64le", -(2_f64.powi(60)), 1 << 60), Ok(float(0.0)));
    assert_eq!(change("f64le", 2_f64.powi(200), 0), Ok(float(2_f64.powi(200))));
    for (form, before, total) in [
        ("f32le", 16_777_216.0, 1),
        ("f32le", 0.25, 1 << 23),
        ("f64le", 0.1, 1),
        ("f64le", 0.5, 1 << 53),
        ("f64le", 2_f64.powi(53), 1),
        ("f64le", 2_f64.powi(200), 1),
        ("f64le", 0.5, (1 << 100) + 1),
    ] {
        let error = change(form, before, total).expect_err("rounded").to_string();
        assert!(error.contains("would have to be rounded"), "{before} {total}: {error}");
    }
    for value in [f64::NAN, f64::INFINITY] {
        let error = shares(&described("n:f64le", 1), &[&value.to_le_bytes()]);
        assert!(matches!(error, Err(QueryError::Mismatched { .. })), "{error:?}");
    }
    let set = shares(&described("n:f32le", 1 << 24 | 1), &[&[0; 4]]).map(drop);
    assert!(matches!(set, Err(QueryError::Unfit { .. })), "{set:?}");
}

#[test]
fn digits_are_written_anew_and_only_whole_ones() {
    let by = described("n:decimal@2", -100).adding().compile().expect("digits");
    let mut out = b"kept".to_vec();
    assert!(!by.changes_in_place());
    let change = by.rewrite(b"x:+0042", -100, &mut out).expect("whole");
    assert_eq!(
        (&out[..], change.after),
        (&b"keptx:-58"[..], sapwood_aggregate::Amount::Whole(-58))
    );
    for value in [&b"x:4.0"[..], b"x:", b"x:NA", b"x"] {
        let refused = by.rewrite(value, 1, &mut out);
        assert!(refused.is_err() && out == b"keptx:-58", "{refused:?}");
        let error = shares(&described("n:decimal@2", 1), &[value]);
        assert!(matches!(error, Err(QueryError::Mismatched { .. })), "{error:?}");
    }
}

#[test]
fn an_object_that_changed_meanwhile_keeps_its_value() {
    let asked = described("n:u8", 10).adding();
    let by = asked.compile().expect("it can be changed");
    let found = shares(&asked, &[&[1], &[2], &[3]]).expect("it fits");
    // 0 has become too great, 1 too short, 2 is as it was.
    let mut now: [Vec<u8>; 3] = [vec![255], Vec::new(), vec![3]];
    let mut progress = found.progress();
    for (share, value) in found.batch(0).shares().zip(&mut now) {
        let outcome = Outcome::from(by.change(value, share.part));
        progress.record(0, &share, outcome);
    }
    assert_eq!(now, [vec![255], Vec::new(), vec![6]]);
    let report = found.report(&progress);
    assert_eq!((report.changed, report.refused, report.given, report.not_given), (1, 2, 3, 7));
    assert_eq!((report.sum_before, report.sum_after), (Some(3.into()), Some(6.into())));
    let first = report.first_refusal.expect("two are refused");
    assert_eq!(first.to_string(), "key 00: the field cannot hold 259");
}

#[test]
fn fields_that_cannot_be_changed_are_refused_with_what_can() {
    for (layout, says) in [
        ("n:key.u8", "it is part of the key"),
        ("n:text", "needs a number"),
        ("n:json($.a)", "it lies in a document"),
        ("n:msgpack($.a)", "it lies in a document"),
        ("n:tuple(u16)", "it is part of a tuple"),
        ("n:split(\"/\",1).decimal", "between separators"),
        ("n:cell(1).decimal", "row of cells"),
        ("m:u8", "there is no field `n`"),
    ] {
        let error = described(layout, 1).compile().expect_err(layout).to_string();
        assert!(error.contains(says), "{layout}: {error}");
        let is_refused = error.contains("cannot be changed");
        assert_eq!(is_refused, error.contains("a number of fixed width, or decimal digits"));
    }
    let key = Disaggregation::new("n:u8".parse().expect("a layout"), "key", 1);
    assert!(key.compile().is_err());
    let asked = || described("n:u8, x:f64le, t:text, j:json($.w)", 1);
    for (asked, says) in [
        (asked().in_proportion_to("x"), "`x` is a float"),
        (asked().in_proportion_to("t"), "needs a number"),
        (asked().in_proportion_to("m"), "there is no field `m`"),
        (asked().in_proportion_to("key"), "needs a number"),
        (asked().weights([(b"a", 1), (b"a", 1)]), "the key a has two weights"),
        (asked().filter("n = 'x'".parse().expect("a condition")), "cannot be compared"),
    ] {
        let error = asked.compile().expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(asked().in_proportion_to("j").compile().is_ok());
}
