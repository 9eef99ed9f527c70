//! The directory or the server that the arguments name, and the way there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sapwood::{Db, DbOptions};
use sapwood_server::Service;
use sapwood_server::net::Housekeeping;
use sapwood_server::service::Options;

use super::address::{self, Secret, Socket};
use super::conversation::Target;
use super::remote;
use crate::args;
use crate::rows::kept;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::escaped;
use crate::terminal::ui::Ui;

/// The other side of a shell.
pub(crate) struct Opened {
    pub(crate) target: Target,
    /// The database, if it is in this process.
    pub(crate) local: Option<(Db, Housekeeping)>,
    /// Its directory.
    pub(crate) directory: Option<PathBuf>,
}

/// What the arguments name.
enum Place {
    Memory,
    Directory(PathBuf),
    /// Its address, which may have a password.
    Server(String),
}

impl Place {
    fn of(args: &args::Shell) -> Outcome<Place> {
        let text = match (&args.dir, &args.target) {
            (Some(directory), _) => return Ok(Place::Directory(directory.clone())),
            (None, None) => return Ok(Place::Memory),
            (None, Some(text)) => text,
        };
        let path = Path::new(text);
        let is_path = path.is_dir() || ["/", "./", "../"].iter().any(|it| text.starts_with(it));
        if path.is_file() {
            return Err(Failure::Usage(format!(
                "{text} is a file: statements name it in quotes, select * from '{text}'"
            )));
        }
        if !is_path {
            return Ok(Place::Server(text.clone()));
        }
        if args.askpass || args.cacert.is_some() {
            return Err(Failure::Usage(
                "--askpass and --cacert are of a server, and a directory is named".to_owned(),
            ));
        }
        Ok(Place::Directory(path.to_owned()))
    }
}

/// Opens the place that the arguments name.
pub(crate) fn open(args: &args::Shell, ui: &Ui) -> Outcome<Opened> {
    match Place::of(args)? {
        Place::Server(text) => {
            let target = server(&text, args)?;
            Ok(Opened { target, local: None, directory: None })
        }
        Place::Directory(path) => {
            let db = kept::opened(ui, DbOptions::default().lazy(), |options| {
                Db::open_with(&path, options)
            })?;
            let name = path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            );
            in_process(db, escaped(&name).into_owned(), Some(path))
        }
        Place::Memory => in_process(Db::in_memory(), "sapwood".to_owned(), None),
    }
}

fn in_process(db: Db, name: String, directory: Option<PathBuf>) -> Outcome<Opened> {
    let service = Service::new(db.clone(), Options::default())
        .map_err(|error| Failure::Failed(format!("the tables cannot be opened: {error}")))?;
    let service = Arc::new(service);
    let housekeeping = Housekeeping::start(Arc::clone(&service))
        .map_err(|error| Failure::Failed(format!("no threads can be started: {error}")))?;
    let target = Target::InProcess(service, name);
    Ok(Opened { target, local: Some((db, housekeeping)), directory })
}

fn server(text: &str, args: &args::Shell) -> Outcome<Target> {
    let mut address = address::parse(text).map_err(|wrong| {
        Failure::Usage(format!("the address of the server cannot be used: {wrong}"))
    })?;
    if args.askpass {
        let typed = rpassword::prompt_password("Password: ")
            .map_err(|error| Failure::Failed(format!("the password cannot be read: {error}")))?;
        address.password = Some(Secret(typed));
    } else if address.password.is_none() {
        let variable = std::env::var("SAPWOOD_PASSWORD").ok();
        address.password = variable.filter(|text| !text.is_empty()).map(Secret);
    }
    let tls = match &address.socket {
        Socket::Tls { .. } => {
            Some(remote::trusted(args.cacert.as_deref()).map_err(Failure::Failed)?)
        }
        Socket::Tcp { .. } | Socket::Unix(_) => None,
    };
    Ok(Target::Server(Box::new(address), tls))
}
