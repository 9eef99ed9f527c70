//! Expressions over the values of a row.

mod evaluate;
mod function;
mod parse;

pub use parse::EXPRESSION_DEPTH_MAX;

use function::Function;

use crate::error::Result;
use crate::value::Value;

/// An expression over the columns of a row: of input (transforms) or of an answer (post-aggregations).
///
/// | form | meaning |
/// |---|---|
/// | `12` `1.5` `'text'` `null` | a constant |
/// | `delay` `"dep delay"` | a column; null if the row has none |
/// | `-x` `!x` `x * y` `x / y` `x % y` `x + y` `x - y` | arithmetic; whole where both are whole |
/// | `x < y` `<=` `>` `>=` `==` `!=` | 1 or 0; null if either is null |
/// | <code>x && y</code> <code>x &#124;&#124; y</code> | 1 or 0; null counts as 0 |
/// | `if(c, x, y)` `nvl(x, y)` `isnull(x)` `notnull(x)` | choices |
/// | `abs` `ceil` `floor` `round` `sqrt` `exp` `log` `pow` `least` `greatest` | figures |
/// | `concat` `lower` `upper` `trim` `strlen` `substring(x, from, len)` `replace(x, this, that)` `contains(x, y)` | texts |
/// | `cast(x, 'LONG')` | to `LONG`, `DOUBLE` or `STRING`; null if it cannot be |
/// | `timestamp_floor(t, 'PT1H', 'Europe/Berlin')` | the begin of the bucket of a time |
///
/// With null, arithmetic and functions of texts are null. What is divided by zero, and what is no finite
/// number, is null; a whole number beyond 64 bits is an error.
///
/// ```
/// use sapwood::rollup::{Expression, Value};
///
/// let late = Expression::parse("if(delay > 15, 'late', 'in time')")?;
/// let found = late.evaluate(&|name| if name == "delay" { 20.into() } else { Value::Null });
/// assert_eq!(found, Ok(Value::text("late")));
/// # Ok::<(), sapwood::rollup::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    node: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(Value<'static>),
    Column(String),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unary {
    Minus,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Plus,
    Minus,
    Times,
    Over,
    Remainder,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`Error::Syntax`](crate::Error::Syntax): where it cannot be read, and what was expected there.
    pub fn parse(text: &str) -> Result<Expression> {
        Ok(Expression { text: text.to_owned(), node: parse::parse(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value, given the values of columns by name.
    ///
    /// # Errors
    /// In words, what has no value: a whole number beyond 64 bits, a text in arithmetic.
    pub fn evaluate<'r>(
        &self,
        columns: &dyn Fn(&str) -> Value<'r>,
    ) -> std::result::Result<Value<'r>, String> {
        evaluate::node(&self.node, columns)
    }

    /// The columns that it reads.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.node, &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn collect<'n>(node: &'n Node, names: &mut Vec<&'n str>) {
    match node {
        Node::Constant(_) => {}
        Node::Column(name) => names.push(name),
        Node::Unary(_, inner) => collect(inner, names),
        Node::Binary(_, left, right) => {
            collect(left, names);
            collect(right, names);
        }
        Node::Call(_, arguments) => arguments.iter().for_each(|inner| collect(inner, names)),
    }
}
