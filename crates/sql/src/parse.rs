//! Statements, read from text.

use std::any::TypeId;

use sapwood_schema::{Value, nearest};
use sqlparser::ast::{Query, SetExpr, Statement};
use sqlparser::dialect::{Dialect, GenericDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, ErrorKind, Result};
use crate::parameters::placed;

/// Operators that follow each other without a parenthesis or a comma between them: each is a step down in the
/// tree that the parser makes, and trees are walked by recursion.
const CHAIN_MAX: usize = 250;

/// Cuts a text as the generic dialect does, with numbers such as `1_000` and `0x1F`.
#[derive(Debug)]
struct Tokens(GenericDialect);

impl Dialect for Tokens {
    /// Lets the tokenizer take this for the generic dialect.
    fn dialect(&self) -> TypeId {
        self.0.dialect()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_non_decimal_integer_literals(&self) -> bool {
        true
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.0.is_delimited_identifier_start(ch)
    }

    fn supports_copy_from_stdin_data(&self) -> bool {
        self.0.supports_copy_from_stdin_data()
    }

    fn supports_literal_prefix_in_qualified_name(&self) -> bool {
        self.0.supports_literal_prefix_in_qualified_name()
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        self.0.supports_multiline_comment_hints()
    }

    fn supports_nested_comments(&self) -> bool {
        self.0.supports_nested_comments()
    }

    fn supports_pipe_operator(&self) -> bool {
        self.0.supports_pipe_operator()
    }

    fn supports_quote_delimited_string(&self) -> bool {
        self.0.supports_quote_delimited_string()
    }

    fn supports_string_escape_constant(&self) -> bool {
        self.0.supports_string_escape_constant()
    }

    fn supports_tilde_like_match_operator(&self) -> bool {
        self.0.supports_tilde_like_match_operator()
    }

    fn supports_unicode_string_literal(&self) -> bool {
        self.0.supports_unicode_string_literal()
    }
}

/// A statement: one of SQL, or the one that this crate adds.
#[derive(Debug, Clone)]
pub(crate) enum Parsed {
    Sql(Box<Statement>),
    /// `summarize t`, `summarize select ...`.
    Summarize(Box<Query>),
}

/// Reads statements, which stand between semicolons, with values in the places of their parameters.
pub(crate) fn statements(sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Parsed>> {
    read(sql, parameters).map_err(|error| error.shown_in(sql))
}

fn tokens_of(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&Tokens(GenericDialect {}), sql).tokenize_with_location();
    tokens.map_err(|error| {
        let at = error.location;
        Error::new(ErrorKind::Syntax, error.message).at(Span { start: at, end: at })
    })
}

fn read(sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Parsed>> {
    let dialect = GenericDialect {};
    let tokens = placed(tokens_of(sql)?, parameters, tokens_of)?;
    expect_shallow(&tokens)?;
    let statements = tokens.split(|token| token.token == Token::SemiColon);
    let is_something = |tokens: &&[TokenWithSpan]| {
        tokens.iter().any(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
    };
    statements.filter(is_something).map(|tokens| one(&dialect, tokens)).collect()
}

/// The statement that tokens are.
fn one(dialect: &GenericDialect, tokens: &[TokenWithSpan]) -> Result<Parsed> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let begin = tokens.iter().position(|token| !is_space(token)).unwrap_or(0);
    let is_summarize = matches!(&tokens[begin].token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("summarize"));
    if is_summarize {
        return summarize(dialect, &tokens[begin + 1..]);
    }
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
    let statement = parser.parse_statement().map_err(|error| of_parser(error, tokens))?;
    expect_end(&parser)?;
    Ok(Parsed::Sql(Box::new(statement)))
}

fn expect_end(parser: &Parser<'_>) -> Result<()> {
    let next = parser.peek_token();
    match next.token {
        Token::EOF => Ok(()),
        token => {
            let what = format!("the end of the statement is expected, and `{token}` stands there");
            Err(Error::new(ErrorKind::Syntax, what).at(next.span))
        }
    }
}

/// What stands behind `summarize`: the name of a table, or a `select`.
fn summarize(dialect: &GenericDialect, tokens: &[TokenWithSpan]) -> Result<Parsed> {
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
    let is_select = matches!(&parser.peek_token().token, Token::Word(word)
        if word.keyword == Keyword::SELECT);
    if is_select {
        let query = parser.parse_query().map_err(|error| of_parser(error, tokens))?;
        expect_end(&parser)?;
        return Ok(Parsed::Summarize(query));
    }
    let table = parser.parse_table_and_joins().map_err(|error| of_parser(error, tokens))?;
    expect_end(&parser)?;
    let every = Parser::parse_sql(dialect, "select * from t");
    let every = every.map_err(|error| of_parser(error, &[]))?.pop();
    let Some(Statement::Query(mut query)) = every else { unreachable!("it is a select") };
    if let SetExpr::Select(select) = &mut *query.body {
        select.from = vec![table];
    }
    Ok(Parsed::Summarize(query))
}

/// Refuses chains whose trees would be too deep.
fn expect_shallow(tokens: &[TokenWithSpan]) -> Result<()> {
    // Operators since the last comma, at each depth of parentheses.
    let mut chains = vec![0_usize];
    for TokenWithSpan { token, span } in tokens {
        match token {
            Token::LParen | Token::LBracket => chains.push(0),
            Token::RParen | Token::RBracket if chains.len() > 1 => {
                chains.pop();
            }
            Token::Comma | Token::SemiColon => *chains.last_mut().expect("there is one") = 0,
            Token::Word(word) if !is_operator(word.keyword) => {}
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::RParen
            | Token::RBracket
            | Token::EOF => {}
            _ => {
                let chain = chains.last_mut().expect("there is one");
                *chain += 1;
                if *chain > CHAIN_MAX {
                    let what = format!(
                        "more than {CHAIN_MAX} operators follow each other here: use `in (...)`, or \
                         parentheses around parts"
                    );
                    return Err(Error::new(ErrorKind::Unsupported, what).at(*span));
                }
            }
        }
    }
    Ok(())
}

fn is_operator(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::CASE
            | Keyword::WHEN
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::JOIN
    )
}

/// The words that statements begin with.
const STATEMENTS: &[&str] = &[
    "alter",
    "copy",
    "create",
    "delete",
    "describe",
    "drop",
    "explain",
    "insert",
    "select",
    "show",
    "summarize",
    "truncate",
    "update",
    "values",
];

/// The refusal of the parser in words of statements, with the place that stands at its end.
fn of_parser(error: ParserError, tokens: &[TokenWithSpan]) -> Error {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return Error::new(ErrorKind::Unsupported, "the statement is nested too deeply");
        }
    };
    let (text, place) = match text.rsplit_once(" at Line: ") {
        Some((what, place)) => {
            let place = place.split_once(", Column: ");
            let place =
                place.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
            (what.to_owned(), place)
        }
        None => (text, None),
    };
    let at = place.map(|(line, column)| Location { line, column });
    let token = at.and_then(|at| tokens.iter().find(|token| token.span.start == at));
    let stands = match token.map(|token| &token.token) {
        None | Some(Token::EOF) => "the statement ends".to_owned(),
        Some(token) => format!("`{token}` stands there"),
    };
    let expected = text.strip_prefix("Expected: ").or_else(|| text.strip_prefix("Expected "));
    let says = match expected {
        Some(rest) => match rest.split_once(", found: ") {
            Some(("an SQL statement", found)) => not_a_statement(found),
            Some((wanted, "EOF")) => format!("{wanted} is expected, and the statement ends"),
            Some((wanted, found)) => format!("{wanted} is expected, and `{found}` stands there"),
            None => format!("{rest} is expected, and {stands}"),
        },
        None if text.starts_with("No infix parser") => {
            format!("an operator, a comma or the end of the expression is expected, and {stands}")
        }
        // The parser's own business.
        None if text.contains("parser") || text.contains("token") || text.contains("BUG") => {
            format!("the statement cannot be read from here on, where {stands}")
        }
        None => text,
    };
    let error = Error::new(ErrorKind::Syntax, says);
    match (token, at) {
        (Some(token), _) => error.at(token.span),
        (None, Some(at)) => error.at(Span { start: at, end: at }),
        (None, None) => error,
    }
}

/// The refusal of what begins with another word than a statement does.
fn not_a_statement(found: &str) -> String {
    match nearest(found, STATEMENTS.iter().copied()) {
        Some(near) => format!("no statement begins with `{found}`: did you mean `{near}`?"),
        None => format!("no statement begins with `{found}`: there are {}", STATEMENTS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_shown_where_they_are() {
        let error = statements("select a\nfrm t where", &[]).expect_err("no statement");
        assert_eq!(error.kind(), ErrorKind::Syntax);
        assert!(error.to_string().contains("\n  frm t where\n"), "{error}");
        let error = statements("select 'a", &[]).expect_err("no statement");
        assert!(error.place().is_some(), "{error}");
        for (sql, says) in [
            ("select 1 2", "`2` stands there"),
            ("select a from t where b !! 3", "stands there"),
            ("select a from t where b ! 3", "`!` stands there"),
            ("select a from t where b c", "c"),
            ("selec 1", "no statement begins with `selec`: did you mean `select`?"),
            ("frobnicate", "no statement begins with `frobnicate`: there are alter, copy"),
            ("select a from t where", "the statement ends"),
            ("select case when", "the statement ends"),
            ("insert t", "is expected"),
            ("select interval from t", ""),
            ("create tabel t (a int)", "`tabel` stands there"),
        ] {
            let Err(error) = statements(sql, &[]) else { continue };
            let error = error.what();
            assert!(error.contains(says), "{sql}: {error}");
            for word in ["parser", "Word", "token", "EOF", "Keyword", "{"] {
                assert!(!error.contains(word), "{sql}: {error}");
            }
        }
        assert!(statements("", &[]).expect("nothing").is_empty());
        assert_eq!(statements("select 1; select 2;", &[]).expect("two").len(), 2);
    }

    #[test]
    fn deep_statements_are_refused() {
        for (begin, middle, end) in
            [("select 1", " + 1", ""), ("select ", "- ", "1"), ("select ", "not ", "true")]
        {
            let sql = format!("{begin}{}{end}", middle.repeat(100_000));
            let error = statements(&sql, &[]).expect_err("too deep");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
        let sql = format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(statements(&sql, &[]).is_err());
        let many = vec!["-1"; 10_000].join(", ");
        assert!(statements(&format!("select a in ({many}) from t"), &[]).is_ok());
    }
}
