//! Parameters of statements: values in the places of `$1` and `?`.
//!
//! Each takes its place as one literal, after the text was cut into tokens: a text stays a text,
//! whatever quotes and semicolons are in it. Numbers stand in parentheses, so that none is the
//! number of a result in `order by` and `group by`.

use sapwood_schema::{DECIMAL_DIGITS_MAX, Precision, Type, Value, decimal_of_text};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};

/// Puts values into the places of parameters. `tokens_of` cuts a text as statements are.
pub(crate) fn placed(
    tokens: Vec<TokenWithSpan>,
    values: &[Value<'_>],
    tokens_of: impl Fn(&str) -> Result<Vec<TokenWithSpan>>,
) -> Result<Vec<TokenWithSpan>> {
    let mut places = Places { values: values.len(), next: 0, is_numbered: None };
    let mut is_used = vec![false; values.len()];
    let mut out = Vec::with_capacity(tokens.len());
    for token in tokens {
        let Token::Placeholder(name) = &token.token else {
            out.push(token);
            continue;
        };
        let at = token.span;
        let place = places.place(name).map_err(|error| error.at(at))?;
        is_used[place] = true;
        match &values[place] {
            Value::Text(text) => out.push(TokenWithSpan {
                token: Token::SingleQuotedString(text.clone().into_owned()),
                span: at,
            }),
            Value::Int(number) if *number >= 0 && wants_bare_number(&out) => {
                out.push(TokenWithSpan {
                    token: Token::Number(number.to_string(), false),
                    span: at,
                });
            }
            value => {
                let text = literal(value).map_err(|error| error.at(at))?;
                let literal = tokens_of(&text)?.into_iter();
                let literal = literal.filter(|token| token.token != Token::EOF);
                out.extend(literal.map(|token| TokenWithSpan { token: token.token, span: at }));
            }
        }
    }
    match is_used.iter().position(|is_used| !is_used) {
        None => Ok(out),
        Some(place) => Err(Error::meaning(format!(
            "{} given, and no statement has a place for value {}",
            count(values.len()),
            place + 1
        ))),
    }
}

/// The places of parameters so far.
struct Places {
    values: usize,
    /// The number of the next `?`.
    next: usize,
    /// True where they are written as `$1`, and not as `?`.
    is_numbered: Option<bool>,
}

impl Places {
    /// The number of the value that a parameter stands for.
    fn place(&mut self, name: &str) -> Result<usize> {
        let number = name[1..].parse::<usize>();
        let place = match (name, number) {
            ("?", _) => {
                self.next += 1;
                self.next - 1
            }
            (_, Ok(number @ 1..)) if name.starts_with('$') => number - 1,
            _ => {
                return Err(Error::meaning(format!(
                    "`{name}` is no parameter: they are numbered ($1, $2), or one behind the other (?)"
                )));
            }
        };
        if *self.is_numbered.get_or_insert(name != "?") != (name != "?") {
            return Err(Error::meaning(
                "parameters are written as $1, $2 or as ?, and not as both",
            ));
        }
        match place < self.values {
            true => Ok(place),
            false => Err(Error::meaning(format!(
                "`{name}` is the parameter for value {}, and {} given",
                place + 1,
                count(self.values)
            ))),
        }
    }
}

fn count(values: usize) -> String {
    match values {
        0 => "no value is".to_owned(),
        1 => "1 value is".to_owned(),
        more => format!("{more} values are"),
    }
}

/// True where the grammar has no room for parentheses around a number: `fetch first ? rows only`,
/// `interval ? day`.
fn wants_bare_number(before: &[TokenWithSpan]) -> bool {
    let mut tokens = before.iter().map(|token| &token.token);
    let last = tokens.rfind(|token| !matches!(token, Token::Whitespace(_)));
    let Some(Token::Word(word)) = last else { return false };
    matches!(word.keyword, Keyword::FETCH | Keyword::FIRST | Keyword::NEXT | Keyword::INTERVAL)
}

/// A value other than a text as a statement has it.
fn literal(value: &Value<'_>) -> Result<String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => format!("({number})"),
        Value::Huge(number) => format!("({number})"),
        Value::Float(number) if number.is_finite() => format!("({number:e})"),
        Value::Float(number) => format!("cast('{number}' as double)"),
        // A number without a point would be a whole number.
        Value::Decimal { scale: 0, .. } => {
            format!("cast({value} as decimal({DECIMAL_DIGITS_MAX},0))")
        }
        Value::Decimal { .. } => format!("({value})"),
        Value::Date(_) => format!("cast('{value}' as date)"),
        Value::Timestamp { precision, .. } => {
            let kind = match precision {
                Precision::Seconds => "timestamp_s",
                Precision::Millis => "timestamp_ms",
                Precision::Micros => "timestamp",
                Precision::Nanos => "timestamp_ns",
            };
            format!("cast('{value}' as {kind})")
        }
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{digits}'")
        }
        other => {
            return Err(Error::unsupported(format!(
                "a parameter is one value, and this is an array: {other}"
            )));
        }
    })
}

/// A value as people type it: a number, `true`, `false`, `null`, a text in single quotes, or else a
/// text as it is. Numbers are of the types that they have in statements: one with a point is a decimal, one with an
/// exponent is a double.
///
/// ```
/// use sapwood::schema::Value;
/// use sapwood::sql::parameter;
///
/// assert_eq!(parameter("7"), Value::Int(7));
/// assert_eq!(parameter("0.1"), Value::Decimal { units: 1, scale: 1 });
/// assert_eq!(parameter("1e3"), Value::Float(1000.0));
/// assert_eq!(parameter("UA"), "UA".into());
/// assert_eq!(parameter("'7'"), "7".into());
/// ```
pub fn parameter(text: &str) -> Value<'static> {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    if let Some(inner) = inner {
        return Value::from(inner.replace("''", "'"));
    }
    match text {
        "null" => return Value::Null,
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    let is_number = text
        .strip_prefix('-')
        .unwrap_or(text)
        .starts_with(|it: char| it.is_ascii_digit() || it == '.');
    let whole =
        Value::of_text(text, &Type::Int(128)).or_else(|_| Value::of_text(text, &Type::UInt(128)));
    match (is_number, whole) {
        (true, Ok(whole)) => whole.into_owned(),
        (true, Err(_)) => match (decimal_of_text(text), text.parse::<f64>()) {
            (Some((units, scale)), _) => Value::Decimal { units, scale },
            // With an exponent, or with more digits than decimals have.
            (None, Ok(number)) => Value::Float(number),
            (None, Err(_)) => Value::from(text.to_owned()),
        },
        (false, _) => Value::from(text.to_owned()),
    }
}
