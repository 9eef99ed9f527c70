//! A change of one field of one object.

use super::field::{Amount, Refusal, Target};
use crate::error::{QueryError, Result, Why};
use crate::question::layout::Layout;
use crate::value::{Float, Value};

/// The change that a [`FieldEdit`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditAction {
    /// The field becomes the operand.
    Set,
    /// The operand is added to the field.
    Add,
    /// The field becomes the lesser of the two.
    Min,
    /// The field becomes the greater of the two.
    Max,
}

/// A change of a field of an object, by the field's name.
///
/// Fields that can be changed are those that a [`Disaggregation`](crate::Disaggregation) changes:
/// numbers of fixed width, and decimal digits to the end, at an offset of the value. Whole numbers
/// are exact, and a result beyond the field's width is refused; floats are rounded once, and an
/// infinite or undefined result is refused.
///
/// # Consistency
/// It changes the bytes that it is given and nothing else. What other readers see of it is up to
/// the update of the table that it is called in.
///
/// ```
/// use sapwood::aggregate::{EditAction, FieldEdit, Layout};
///
/// let layout: Layout = "seats:u16le, delay:f64le@2".parse()?;
/// let board = FieldEdit::new(&layout, "seats", EditAction::Add, (-1).into())?;
/// let worst = FieldEdit::new(&layout, "delay", EditAction::Max, 12.into())?;
///
/// let mut flight = [&150_u16.to_le_bytes()[..], &7.5_f64.to_le_bytes()].concat();
/// assert_eq!(board.apply(&mut flight)?, 149.into());
/// assert_eq!(worst.apply(&mut flight)?, 12.into());
/// assert_eq!(flight[..2], 149_u16.to_le_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FieldEdit {
    target: Target,
    action: EditAction,
    operand: Amount,
}

impl FieldEdit {
    /// A change of the field that is called so, by an operand.
    ///
    /// # Errors
    /// [`QueryError::Query`]: a name that is not known, a field that cannot be changed, an operand
    /// that is no number, or a fraction for a field of whole numbers.
    pub fn new(
        layout: &Layout,
        field: &str,
        action: EditAction,
        operand: Value<'_>,
    ) -> Result<FieldEdit> {
        let Some(number) = layout.find(field) else {
            let known = layout.fields().iter().map(|field| &field.name[..]);
            return Err(QueryError::no_field(field, &known.collect::<Vec<_>>()));
        };
        let target = Target::new(&layout.fields()[number])?;
        let operand = match (operand.canonical(), target.is_float()) {
            (Value::Int(whole), false) => Amount::Whole(whole),
            (Value::Int(whole), true) => Amount::Float(whole as f64),
            (Value::Float(float), true) => Amount::Float(float.get()),
            (Value::Float(float), false) => {
                let float = float.get();
                let why = format!("field `{field}` holds whole numbers, and {float} is none");
                return Err(QueryError::Query(why));
            }
            (operand, _) => {
                let kind = operand.kind();
                let why = format!("field `{field}` holds numbers, and the operand is {kind}");
                return Err(QueryError::Query(why));
            }
        };
        Ok(FieldEdit { target, action, operand })
    }

    /// Changes the field of a value, or nothing; answers what it holds then.
    ///
    /// # Errors
    /// The value has no such field, the field is missing where its amount counts, or it cannot hold
    /// what it would become.
    pub fn apply(&self, value: &mut Vec<u8>) -> std::result::Result<Value<'static>, Refusal> {
        self.change(value).map_err(Refusal)
    }

    fn change(&self, value: &mut Vec<u8>) -> std::result::Result<Value<'static>, Why> {
        let after = self.after(self.target.read(value)?)?;
        self.target.check_writable(after)?;
        self.target.put(value, after);
        after.value().ok_or(Why::Nan)
    }

    fn after(&self, before: Amount) -> std::result::Result<Amount, Why> {
        use EditAction::{Add, Max, Min, Set};
        match (self.action, before, self.operand) {
            (Set, _, Amount::Whole(operand)) => self.target.whole(operand),
            (Set, _, Amount::Float(operand)) => self.rounded(operand),
            (Add, Amount::Whole(before), Amount::Whole(operand)) => {
                self.target.whole(before.checked_add(operand).ok_or(Why::BeyondWhole)?)
            }
            (Min, Amount::Whole(before), Amount::Whole(operand)) => {
                self.target.whole(before.min(operand))
            }
            (Max, Amount::Whole(before), Amount::Whole(operand)) => {
                self.target.whole(before.max(operand))
            }
            (Add, Amount::Float(before), Amount::Float(operand)) => self.rounded(before + operand),
            (Min, Amount::Float(before), Amount::Float(operand)) => {
                self.rounded(before.min(operand))
            }
            (Max, Amount::Float(before), Amount::Float(operand)) => {
                self.rounded(before.max(operand))
            }
            // A field and its operand are of one form; what is missing compares with nothing.
            (_, _, _) => Err(Why::Missing),
        }
    }

    fn rounded(&self, value: f64) -> std::result::Result<Amount, Why> {
        let value = self.target.rounded(value);
        match Float::new(value) {
            None => Err(Why::Nan),
            Some(float) if float.get().is_infinite() => Err(Why::NotFinite),
            Some(float) => Ok(Amount::Float(float.get())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(
        layout: &str,
        action: EditAction,
        operand: impl Into<Value<'static>>,
        value: &[u8],
    ) -> std::result::Result<(Value<'static>, Vec<u8>), String> {
        let layout: Layout = layout.parse().expect("a layout");
        let edit = FieldEdit::new(&layout, "n", action, operand.into());
        let edit = edit.map_err(|error| error.to_string())?;
        let mut changed = value.to_vec();
        match edit.apply(&mut changed) {
            Ok(after) => Ok((after, changed)),
            Err(refusal) => {
                assert_eq!(changed, value, "a refusal changes nothing");
                Err(refusal.to_string())
            }
        }
    }

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    #[test]
    fn whole_numbers_change_in_place() {
        for (action, operand, expected) in [
            (EditAction::Set, -7, -7_i16),
            (EditAction::Add, -7, 93),
            (EditAction::Min, 99, 99),
            (EditAction::Min, 101, 100),
            (EditAction::Max, 99, 100),
            (EditAction::Max, 101, 101),
        ] {
            let value = [&b"ab"[..], &100_i16.to_be_bytes(), b"z"].concat();
            let changed = [&b"ab"[..], &expected.to_be_bytes(), b"z"].concat();
            let edited = edit("n:i16be@2", action, operand, &value);
            assert_eq!(edited, Ok((expected.into(), changed)), "{action:?}");
        }
    }

    #[test]
    fn floats_are_rounded_once_and_stay_finite() {
        let value = 0.1_f64.to_le_bytes();
        let sum = 0.1 + 0.2;
        let edited = edit("n:f64le", EditAction::Add, float(0.2), &value);
        assert_eq!(edited, Ok((float(sum), sum.to_le_bytes().to_vec())));
        let edited = edit("n:f32le", EditAction::Set, float(0.1), &0_f32.to_le_bytes());
        assert_eq!(edited, Ok((float(0.1_f32.into()), 0.1_f32.to_le_bytes().to_vec())));
        let edited = edit("n:f32le", EditAction::Set, float(1e300), &0_f32.to_le_bytes());
        assert!(edited.is_err_and(|why| why.contains("infinite")));
        let greatest = f64::MAX.to_le_bytes();
        assert!(edit("n:f64le", EditAction::Add, float(f64::MAX), &greatest).is_err());
        assert!(edit("n:f64le", EditAction::Max, 1, &f64::NAN.to_le_bytes()).is_err());
    }

    #[test]
    fn digits_may_change_their_length() {
        let edited = edit("n:decimal@1", EditAction::Add, 1, b"x99");
        assert_eq!(edited, Ok((100.into(), b"x100".to_vec())));
        assert!(edit("n:decimal", EditAction::Add, 1, b"9.5").is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (layout, action, operand, value, why) in [
            ("n:u8", EditAction::Add, 1.into(), &[255_u8][..], "cannot hold 256"),
            ("n:u8", EditAction::Set, (-1).into(), &[0], "cannot hold -1"),
            ("n:u8@3", EditAction::Set, 1.into(), &[0], "needs 4 bytes"),
            ("n:u8", EditAction::Set, float(0.5), &[0], "holds whole numbers"),
            ("n:u8", EditAction::Set, "1".into(), &[0], "is a text"),
            ("n:u8?9", EditAction::Add, 1.into(), &[9], "is missing"),
            ("n:u8?9", EditAction::Add, 1.into(), &[8], "stands for missing"),
            ("n:key.u8", EditAction::Set, 1.into(), &[0], "part of the key"),
            ("m:u8", EditAction::Set, 1.into(), &[0], "no field `n`"),
        ] {
            let error = edit(layout, action, operand, value).expect_err(layout);
            assert!(error.contains(why), "{error}");
        }
        // A missing field can be set.
        assert_eq!(edit("n:u8?9", EditAction::Set, 1, &[9]), Ok((1.into(), vec![1])));
    }
}
