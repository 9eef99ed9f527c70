//! The groups that objects fall into.

pub(crate) mod text;

use crate::error::{QueryError, Result, Why};
use crate::question::layout::Field;
use crate::value::{Float, Value};

/// One of the things by which objects are grouped, and its name in the answer.
///
/// # Text form
///
/// `carrier` is a field, `key` the whole key, `bucket(time, 3600)` a field in steps of 3,600 from 0,
/// `bucket(time, 86400, 18000)` from 18,000 on, `classes(delay, 0, 15, 60)` the greatest of these
/// bounds that the field reaches, and `day:key.bytes2@0` a field that is declared on the spot. Behind
/// each may stand `as` and a name.
///
/// ```
/// use sapwood::aggregate::Group;
///
/// let groups = Group::list("carrier, bucket(time, 3600) as hour, day:key.u16be@4")?;
/// assert_eq!(groups[1], Group::bucket("time", 3600, 0).named("hour"));
/// assert_eq!(groups[2].name, "day");
/// # Ok::<(), sapwood::aggregate::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// By what.
    pub by: GroupBy,
    /// The name of the answer's column.
    pub name: String,
}

/// By what objects are grouped.
///
/// Numbers of equal worth are one group; all missing values are one group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupBy {
    /// The value of a field, or the key.
    Input(Input),
    /// The value of a field that the layout does not have.
    Field(Box<Field>),
    /// A number in steps: the greatest `origin + n * width`, n whole, that it reaches. The unit is
    /// that of the field: with seconds, a width of 3,600 makes hours.
    Bucket {
        /// The field.
        input: Input,
        /// How wide a step is, above zero.
        width: i128,
        /// Where a step begins.
        origin: i128,
    },
    /// The greatest of these bounds, ascending, that a number reaches; minus infinity below them.
    Classes {
        /// The field.
        input: Input,
        /// The bounds.
        bounds: Vec<Value<'static>>,
    },
}

/// What is read of an object: a field by its name, or the whole key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The key.
    Key,
    /// A field.
    Field(String),
}

impl From<&str> for Input {
    /// A field; `key` is the key.
    fn from(name: &str) -> Input {
        if name == "key" { Input::Key } else { Input::Field(name.to_owned()) }
    }
}

impl Group {
    /// By a field, or `key`.
    pub fn field(input: impl Into<Input>) -> Group {
        Group::by(GroupBy::Input(input.into()))
    }

    /// By steps of a number.
    pub fn bucket(input: impl Into<Input>, width: i128, origin: i128) -> Group {
        Group::by(GroupBy::Bucket { input: input.into(), width, origin })
    }

    /// By anything, named as it is written.
    pub fn by(by: GroupBy) -> Group {
        let name = match &by {
            GroupBy::Field(field) => field.name.clone(),
            GroupBy::Input(Input::Field(name)) => name.clone(),
            other => other.to_string(),
        };
        Group { by, name }
    }

    /// With another name.
    pub fn named(self, name: impl Into<String>) -> Group {
        Group { name: name.into(), ..self }
    }

    /// Reads several, with commas between.
    ///
    /// # Errors
    /// What cannot be read, and where.
    pub fn list(text: &str) -> std::result::Result<Vec<Group>, crate::SyntaxError> {
        text::list(text)
    }
}

/// How a value becomes that of its group.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Plain,
    Bucket {
        width: i128,
        /// Where a step begins, from 0 and below the width.
        begin: i128,
    },
    Classes(Vec<Value<'static>>),
}

impl Shape {
    pub(crate) fn bucket(width: i128, origin: i128) -> Result<Shape> {
        if width <= 0 {
            let why = format!("a bucket is {width} wide: give it a width above zero");
            return Err(QueryError::Query(why));
        }
        Ok(Shape::Bucket { width, begin: origin.rem_euclid(width) })
    }

    pub(crate) fn classes(bounds: &[Value<'static>]) -> Result<Shape> {
        let ascend = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let numbers = bounds.iter().all(|bound| bound.kind() == crate::Kind::Number);
        if bounds.is_empty() || !ascend || !numbers {
            let why = "the bounds of classes are numbers, at least one, that ascend";
            return Err(QueryError::Query(why.into()));
        }
        Ok(Shape::Classes(bounds.to_vec()))
    }

    /// Whether it is of numbers.
    pub(crate) fn needs_numbers(&self) -> bool {
        !matches!(self, Shape::Plain)
    }

    #[inline]
    pub(crate) fn of<'a>(&self, value: Value<'a>) -> std::result::Result<Value<'a>, Why> {
        match self {
            Shape::Plain => Ok(value),
            Shape::Bucket { width, begin } => {
                let whole = match value {
                    Value::Int(value) => Ok(value),
                    // Steps begin at whole numbers, so what is behind the point does not matter.
                    Value::Float(value) => floor(value),
                    other => Err(not_a_number(&other)),
                }?;
                // In steps that do not leave 128 bits unless the answer does.
                let beyond = remainder(whole, *width) - begin;
                let offset = if beyond < 0 { beyond + width } else { beyond };
                whole.checked_sub(offset).map(Value::Int).ok_or(Why::Wide)
            }
            Shape::Classes(bounds) => {
                if value.kind() != crate::Kind::Number {
                    return Err(not_a_number(&value));
                }
                let reached = bounds.partition_point(|bound| *bound <= value);
                let below = Float::new(f64::NEG_INFINITY).map(Value::Float);
                Ok(match reached.checked_sub(1) {
                    Some(last) => bounds[last].clone(),
                    None => below.expect("infinities are not NaN"),
                })
            }
        }
    }
}

/// The least number from 0 that is a whole number of widths away. Divisions of 128 bits take several
/// times as long as those of 64.
fn remainder(value: i128, width: i128) -> i128 {
    match (i64::try_from(value), i64::try_from(width)) {
        (Ok(value), Ok(width)) => value.rem_euclid(width).into(),
        _ => value.rem_euclid(width),
    }
}

fn not_a_number(value: &Value<'_>) -> Why {
    Why::Kind { found: value.kind(), wanted: crate::Kind::Number }
}

fn floor(value: Float) -> std::result::Result<i128, Why> {
    let floor = value.get().floor();
    if value.get().is_infinite() {
        return Err(Why::NotFinite);
    }
    match Float::new(floor).map(|floor| Value::Float(floor).canonical()) {
        Some(Value::Int(floor)) => Ok(floor),
        _ => Err(Why::Wide),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn float(value: f64) -> Value<'static> {
        Value::float(value).expect("not NaN")
    }

    #[test]
    fn numbers_fall_into_buckets_and_classes() {
        let bucket = |width, origin| Shape::bucket(width, origin).expect("a bucket");
        let classes = Shape::classes(&[0.into(), float(0.5), 60.into()]).expect("classes");
        for (shape, value, expected) in [
            (bucket(10, 0), Value::Int(0), Value::Int(0)),
            (bucket(10, 0), Value::Int(-1), Value::Int(-10)),
            (bucket(10, 3), Value::Int(12), Value::Int(3)),
            (bucket(10, 103), Value::Int(13), Value::Int(13)),
            (bucket(10, 0), float(-0.5), Value::Int(-10)),
            (bucket(10, 0), float(19.9), Value::Int(10)),
            (bucket(i128::MAX, i128::MIN), Value::Int(i128::MAX), Value::Int(i128::MAX - 1)),
            (classes.clone(), Value::Int(-1), float(f64::NEG_INFINITY)),
            (classes.clone(), Value::Int(0), Value::Int(0)),
            (classes.clone(), float(0.7), float(0.5)),
            (classes, Value::Int(1000), Value::Int(60)),
        ] {
            assert_eq!(shape.of(value.clone()), Ok(expected), "{shape:?} {value}");
        }
    }

    #[test]
    fn what_has_no_bucket_is_a_mismatch() {
        let shape = Shape::bucket(10, 0).expect("a bucket");
        assert_eq!(shape.of(Value::Int(i128::MIN)), Err(Why::Wide));
        assert_eq!(shape.of(float(1e40)), Err(Why::Wide));
        assert_eq!(shape.of(float(f64::INFINITY)), Err(Why::NotFinite));
        assert!(matches!(shape.of("x".into()), Err(Why::Kind { .. })));
        assert!(Shape::bucket(0, 0).is_err());
        for bounds in [&[][..], &[2.into(), 1.into()], &[1.into(), 1.into()], &["x".into()]] {
            assert!(Shape::classes(bounds).is_err(), "{bounds:?}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_begins_at_most_a_width_before(
            value in any::<i64>(), width in 1_i64.., origin in any::<i64>(),
        ) {
            let (value, width, origin) = (value.into(), width.into(), origin.into());
            let shape = Shape::bucket(width, origin).expect("a bucket");
            let Ok(Value::Int(begin)) = shape.of(Value::Int(value)) else { panic!("a bucket") };
            prop_assert!(begin <= value && value - begin < width);
            prop_assert_eq!((begin - origin) % width, 0);
        }
    }
}
