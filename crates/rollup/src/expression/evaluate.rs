//! From tree to value.

use super::function::{Function, double, finite};
use super::{Binary, Node, Unary};
use crate::value::Value;

pub(super) fn node<'r>(
    node: &Node,
    columns: &dyn Fn(&str) -> Value<'r>,
) -> Result<Value<'r>, String> {
    let value = |inner: &Node| self::node(inner, columns);
    match node {
        Node::Constant(constant) => Ok(constant.clone()),
        Node::Column(name) => Ok(columns(name)),
        Node::Unary(Unary::Not, inner) => Ok(truth(!value(inner)?.is_true())),
        Node::Unary(Unary::Minus, inner) => match value(inner)? {
            Value::Null => Ok(Value::Null),
            Value::Long(number) => {
                Ok(Value::Long(number.checked_neg().ok_or("the figure is beyond 64 bits")?))
            }
            other => Ok(finite(-double(&other)?)),
        },
        Node::Binary(Binary::And, left, right) => {
            Ok(truth(value(left)?.is_true() && value(right)?.is_true()))
        }
        Node::Binary(Binary::Or, left, right) => {
            Ok(truth(value(left)?.is_true() || value(right)?.is_true()))
        }
        Node::Binary(operator, left, right) => binary(*operator, value(left)?, value(right)?),
        Node::Call(Function::If, arguments) => {
            let chosen = if value(&arguments[0])?.is_true() { 1 } else { 2 };
            value(&arguments[chosen])
        }
        Node::Call(Function::Nvl, arguments) => {
            for argument in arguments {
                let found = value(argument)?;
                if !found.is_null() {
                    return Ok(found);
                }
            }
            Ok(Value::Null)
        }
        Node::Call(function, arguments) => {
            function.call(arguments.iter().map(value).collect::<Result<_, _>>()?)
        }
    }
}

fn truth(is_true: bool) -> Value<'static> {
    Value::Long(is_true.into())
}

fn binary<'r>(operator: Binary, left: Value<'r>, right: Value<'r>) -> Result<Value<'r>, String> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    match operator {
        Binary::Or | Binary::And => unreachable!("these need not both sides"),
        Binary::Equal => Ok(truth(compare(&left, &right).is_eq())),
        Binary::Unequal => Ok(truth(compare(&left, &right).is_ne())),
        Binary::Less => Ok(truth(compare(&left, &right).is_lt())),
        Binary::AtMost => Ok(truth(compare(&left, &right).is_le())),
        Binary::Greater => Ok(truth(compare(&left, &right).is_gt())),
        Binary::AtLeast => Ok(truth(compare(&left, &right).is_ge())),
        Binary::Plus if matches!((&left, &right), (Value::Text(_), _) | (_, Value::Text(_))) => {
            Ok(format!("{left}{right}").into())
        }
        Binary::Plus | Binary::Minus | Binary::Times | Binary::Over | Binary::Remainder => {
            arithmetic(operator, &left, &right)
        }
    }
}

/// A text and a number compare as numbers if the text says one.
fn compare(left: &Value<'_>, right: &Value<'_>) -> std::cmp::Ordering {
    let as_number = |value: &Value<'_>| match value {
        Value::Text(_) => match (value.to_long(), value.to_double()) {
            (Ok(Some(long)), Ok(Some(double))) if long as f64 == double => Some(Value::Long(long)),
            (_, Ok(Some(double))) => Some(Value::Double(double)),
            _ => None,
        },
        _ => None,
    };
    match (left, right) {
        (Value::Text(_), Value::Long(_) | Value::Double(_)) => {
            as_number(left).map_or_else(|| left.compare(right), |left| left.compare(right))
        }
        (Value::Long(_) | Value::Double(_), Value::Text(_)) => {
            as_number(right).map_or_else(|| left.compare(right), |right| left.compare(&right))
        }
        _ => left.compare(right),
    }
}

fn arithmetic(
    operator: Binary,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Value<'static>, String> {
    if let (Value::Long(left), Value::Long(right)) = (left, right) {
        let figure = match operator {
            Binary::Plus => left.checked_add(*right),
            Binary::Minus => left.checked_sub(*right),
            Binary::Times => left.checked_mul(*right),
            _ if *right == 0 => return Ok(Value::Null),
            Binary::Over => left.checked_div(*right),
            _ => left.checked_rem(*right),
        };
        return figure
            .map(Value::Long)
            .ok_or_else(|| format!("a figure of {left} and {right} is beyond 64 bits"));
    }
    let (left, right) = (double(left)?, double(right)?);
    Ok(finite(match operator {
        Binary::Plus => left + right,
        Binary::Minus => left - right,
        Binary::Times => left * right,
        Binary::Over => left / right,
        _ => left % right,
    }))
}

#[cfg(test)]
mod tests {
    use crate::expression::{EXPRESSION_DEPTH_MAX, Expression};
    use crate::value::Value;

    fn value(text: &str) -> Value<'static> {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let columns = |name: &str| match name {
            "two" => Value::Long(2),
            "half" => Value::Double(0.5),
            "word" => Value::text("Oak"),
            "a b" => Value::Long(7),
            _ => Value::Null,
        };
        expression.evaluate(&columns).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn expressions_have_the_values_that_they_say() {
        let long = [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 3 - 2", 5),
            ("7 / 2", 3),
            ("-7 % 4", -3),
            ("-two + 3", 1),
            ("1 < two && two <= 2", 1),
            ("1 == 2 || 1 != 2", 1),
            ("1 + 1 == two", 1),
            ("!two", 0),
            ("!0", 1),
            ("if(half > 0.4, 1, 2)", 1),
            ("nvl(gone, null, 3)", 3),
            ("isnull(gone) + notnull(two)", 2),
            ("\"a b\"", 7),
            ("floor(2.7) + ceil(2.1) + round(2.5)", 8),
            ("abs(-3)", 3),
            ("greatest(1, two, gone)", 2),
            ("least(1.5, two) == 1.5", 1),
            ("strlen('aö')", 2),
            ("cast('12', 'long')", 12),
            ("contains(word, 'ak')", 1),
            ("'10' > 9", 1),
            ("timestamp_floor(5000, 'PT2S')", 4000),
            ("9223372036854775807", i64::MAX),
        ];
        for (text, expected) in long {
            assert_eq!(value(text), Value::Long(expected), "{text}");
        }
        let texts = [
            ("lower(word) + 's'", "oaks"),
            ("concat(upper('x'), 1, '-')", "X1-"),
            ("substring(word, 1)", "ak"),
            ("substring(word, 0, 1)", "O"),
            ("replace('a.b.c', '.', '')", "abc"),
            ("trim('  a ')", "a"),
            (r"'it\'s'", "it's"),
            ("cast(1.5, 'STRING')", "1.5"),
        ];
        for (text, expected) in texts {
            assert_eq!(value(text), Value::text(expected), "{text}");
        }
        assert_eq!(value("half * 3"), Value::Double(1.5));
        assert_eq!(value("pow(2, 0.5) == sqrt(2)"), Value::Long(1));
        for null in ["gone + 1", "1 / 0", "1.0 / 0", "log(-1)", "gone == gone", "cast('x','LONG')"]
        {
            assert_eq!(value(null), Value::Null, "{null}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        for (text, offset) in [
            ("", 0),
            ("1 +", 3),
            ("(1", 2),
            ("1 2", 2),
            ("'a", 0),
            ("f(1)", 0),
            ("if(1)", 0),
            ("a ? b", 2),
        ] {
            match Expression::parse(text) {
                Err(crate::Error::Syntax(error)) => assert_eq!(error.offset, offset, "{error}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        let deep = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
        assert!(Expression::parse(&deep(EXPRESSION_DEPTH_MAX - 1)).is_ok());
        assert!(Expression::parse(&deep(EXPRESSION_DEPTH_MAX + 1)).is_err());
        assert!(Expression::parse(&"-".repeat(1 << 16)).is_err());
        assert!(Expression::parse(&"1+".repeat(1 << 16)).is_err());
    }

    #[test]
    fn figures_beyond_their_type_are_errors() {
        for text in ["9223372036854775807 + 1", "-9223372036854775807 - 2", "'x' * 2"] {
            let expression = Expression::parse(text).expect(text);
            assert!(expression.evaluate(&|_| Value::Null).is_err(), "{text}");
        }
    }
}
