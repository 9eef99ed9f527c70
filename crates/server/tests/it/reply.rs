//! Replies in both versions.

use sapwood_server::protocol::reply::{Protocol, Reply};

fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
    let mut out = b"before".to_vec();
    write(&mut Reply::new(&mut out, protocol));
    let text = String::from_utf8(out).expect("it was text");
    text.strip_prefix("before").expect("it goes behind").replace("\r\n", "|")
}

#[test]
fn each_kind_in_both_versions() {
    type Write = fn(&mut Reply<'_>);
    let cases: &[(Write, &str, &str)] = &[
        (|it| it.simple("OK"), "+OK|", "+OK|"),
        (|it| it.error("ERR a\r\nb"), "-ERR a  b|", "-ERR a  b|"),
        (|it| it.integer(i64::MIN), ":-9223372036854775808|", ":-9223372036854775808|"),
        (|it| it.bulk(b""), "$0||", "$0||"),
        (|it| it.bulk(b"abc"), "$3|abc|", "$3|abc|"),
        (|it| it.bulk_integer(-12), "$3|-12|", "$3|-12|"),
        (|it| it.null(), "$-1|", "_|"),
        (|it| it.null_array(), "*-1|", "_|"),
        (|it| it.array(2), "*2|", "*2|"),
        (|it| it.map(2), "*4|", "%2|"),
        (|it| it.set(2), "*2|", "~2|"),
        (|it| it.push(3), "*3|", ">3|"),
        (|it| it.boolean(true), ":1|", "#t|"),
        (|it| it.boolean(false), ":0|", "#f|"),
        (|it| it.big_number("-123"), "$4|-123|", "(-123|"),
        (|it| it.verbatim("hi"), "$2|hi|", "=6|txt:hi|"),
        (|it| it.double(1.5), "$3|1.5|", ",1.5|"),
        (|it| it.double(-0.0), "$2|-0|", ",-0|"),
        (|it| it.double(3.0), "$1|3|", ",3|"),
        (|it| it.double(1e300), "$6|1e+300|", ",1e+300|"),
        (|it| it.double(1e-7), "$4|1e-7|", ",1e-7|"),
        (|it| it.double(f64::INFINITY), "$3|inf|", ",inf|"),
        (|it| it.double(f64::NEG_INFINITY), "$4|-inf|", ",-inf|"),
        (|it| it.double(f64::NAN), "$3|nan|", ",nan|"),
    ];
    for (write, two, three) in cases {
        assert_eq!(written(Protocol::Resp2, write), *two);
        assert_eq!(written(Protocol::Resp3, write), *three);
    }
}
