//! From text to tree, by precedence climbing.

use super::function::Function;
use super::{Binary, Node, Unary};
use crate::error::SyntaxError;
use crate::value::Value;

/// So deep may an expression nest.
pub const EXPRESSION_DEPTH_MAX: usize = 64;

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let node = parser.binary(0)?;
    parser.skip_spaces();
    match parser.rest().is_empty() {
        true => Ok(node),
        false => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

/// Operators of two sides, with how tightly they bind. Longer ones come first.
const OPERATORS: [(&str, Binary, u8); 13] = [
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("==", Binary::Equal, 3),
    ("!=", Binary::Unequal, 3),
    ("<=", Binary::AtMost, 4),
    (">=", Binary::AtLeast, 4),
    ("<", Binary::Less, 4),
    (">", Binary::Greater, 4),
    ("+", Binary::Plus, 5),
    ("-", Binary::Minus, 5),
    ("*", Binary::Times, 6),
    ("/", Binary::Over, 6),
    ("%", Binary::Remainder, 6),
];

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let found = match self.rest().chars().next() {
            Some(found) => format!("`{found}`"),
            None => "the end".to_owned(),
        };
        self.refused(format!("expected {what}, found {found}"))
    }

    fn refused(&self, what: String) -> SyntaxError {
        SyntaxError { text: self.text.to_owned(), offset: self.at, what }
    }

    fn takes(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expects(&mut self, token: &str) -> Result<(), SyntaxError> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Node, SyntaxError>,
    ) -> Result<Node, SyntaxError> {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(self.refused(format!("it nests deeper than {EXPRESSION_DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let node = inner(self);
        self.depth -= 1;
        node
    }

    /// Operators that bind more tightly than `bound`.
    fn binary(&mut self, bound: u8) -> Result<Node, SyntaxError> {
        self.deeper(|parser| {
            let mut left = parser.unary()?;
            let mut levels = 0;
            loop {
                parser.skip_spaces();
                let rest = parser.rest();
                let found = OPERATORS.iter().find(|(token, ..)| rest.starts_with(token));
                let Some(&(token, operator, binds)) = found.filter(|(.., binds)| *binds > bound)
                else {
                    return Ok(left);
                };
                // A chain leans to the left, and is as deep as it is long.
                levels += 1;
                if levels > 16 * EXPRESSION_DEPTH_MAX {
                    return Err(parser.refused("it has too many operators in a row".to_owned()));
                }
                parser.at += token.len();
                let right = parser.binary(binds)?;
                left = Node::Binary(operator, Box::new(left), Box::new(right));
            }
        })
    }

    fn unary(&mut self) -> Result<Node, SyntaxError> {
        self.skip_spaces();
        let operator = match self.rest().as_bytes() {
            [b'-', ..] => Unary::Minus,
            [b'!', next, ..] if *next != b'=' => Unary::Not,
            _ => return self.operand(),
        };
        self.at += 1;
        let inner = self.deeper(Self::unary)?;
        Ok(match (operator, inner) {
            (Unary::Minus, Node::Constant(Value::Long(number))) => {
                Node::Constant(Value::Long(-number))
            }
            (operator, inner) => Node::Unary(operator, Box::new(inner)),
        })
    }

    fn operand(&mut self) -> Result<Node, SyntaxError> {
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.binary(0)?;
                self.expects(")")?;
                Ok(inner)
            }
            Some('\'') => {
                let text = self.quoted('\'')?;
                Ok(Node::Constant(Value::Text(text.into())))
            }
            Some('"') => Ok(Node::Column(self.quoted('"')?)),
            Some(digit) if digit.is_ascii_digit() || digit == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(),
            _ => Err(self.expected("a number, a text, a column, a function or `(`")),
        }
    }

    /// A backslash takes the sign behind it as it is.
    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let mut text = String::new();
        let mut signs = self.rest().char_indices().skip(1);
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => match signs.next() {
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                sign if sign == quote => {
                    self.at += at + quote.len_utf8();
                    return Ok(text);
                }
                sign => text.push(sign),
            }
        }
        Err(self.refused(format!("the text that begins here has no closing {quote}")))
    }

    fn number(&mut self) -> Result<Node, SyntaxError> {
        let rest = self.rest().as_bytes();
        let mut len = 0;
        while let Some(&byte) = rest.get(len) {
            let is_exponent_sign =
                matches!(byte, b'+' | b'-') && matches!(rest[len - 1], b'e' | b'E');
            if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || is_exponent_sign) {
                break;
            }
            len += 1;
        }
        let text = &self.rest()[..len];
        let constant = match text.parse::<i64>() {
            Ok(number) => Value::Long(number),
            Err(_) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Double(number),
                _ => return Err(self.refused(format!("`{text}` is no number"))),
            },
        };
        self.at += len;
        Ok(Node::Constant(constant))
    }

    fn name(&mut self) -> Result<Node, SyntaxError> {
        let rest = self.rest();
        let len = rest
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '.' | '$')))
            .unwrap_or(rest.len());
        let (begin, name) = (self.at, &rest[..len]);
        self.at += len;
        if !self.takes("(") {
            return Ok(match name {
                "null" => Node::Constant(Value::Null),
                "true" => Node::Constant(Value::Long(1)),
                "false" => Node::Constant(Value::Long(0)),
                name => Node::Column(name.to_owned()),
            });
        }
        let mut arguments = Vec::new();
        if !self.takes(")") {
            loop {
                arguments.push(self.binary(0)?);
                if !self.takes(",") {
                    break;
                }
            }
            self.expects(")")?;
        }
        let function = Function::resolve(name, &arguments);
        let function = function.map_err(|what| {
            self.at = begin;
            self.refused(what)
        })?;
        Ok(Node::Call(function, arguments))
    }
}
