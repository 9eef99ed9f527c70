//! Errors of tables in the words of statements, which know no methods of a program.

use crate::Error;
use crate::schema::nearest;

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
pub(super) fn said(error: Error) -> String {
    match &error {
        Error::TableExists { name, engine } => format!(
            "table `{name}` is there already, and is {engine}: choose another name, or drop it"
        ),
        Error::TableMissing { name, known } => {
            match nearest(name, known.iter().map(|it| &it[..])) {
                Some(near) => format!("no table `{name}`: did you mean `{near}`?"),
                None if known.is_empty() => {
                    format!("no table `{name}`, and no other: `create table` makes one")
                }
                None => format!("no table `{name}`; there are: {}", known.join(", ")),
            }
        }
        Error::OrderedEngine { table, cause } => format!("table `{table}`: {cause}"),
        Error::HashEngine { table, cause } => format!("table `{table}`: {cause}"),
        Error::TreeEngine { table, cause } => format!("table `{table}`: {cause}"),
        Error::ReadOnly { path } => {
            format!("{} is open to be read: nothing in it can be changed", path.display())
        }
        Error::Conflict => {
            "other statements change the same rows all the time: run it again".to_owned()
        }
        _ => error.to_string(),
    }
}
