//! Sockets at paths.

use std::fs;
use std::os::unix::net::UnixListener;

use sapwood_server::net::Listeners;

fn listen(path: &std::path::Path) -> Result<Listeners, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut listeners = Listeners::default();
        listeners.unix(path).map(|()| listeners).map_err(|error| error.to_string())
    })
}

#[test]
fn a_socket_that_was_left_behind_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("sapwood.sock");
    // Another server.
    let other = UnixListener::bind(&path).expect("a socket");
    listen(&path).expect_err("a server listens there");
    drop(other);
    assert!(path.exists(), "the socket stays behind");
    listen(&path).expect("no server listens there any more");
    // A file of the user's.
    let file = folder.path().join("data.csv");
    fs::write(&file, "a,b").expect("it is written");
    listen(&file).expect_err("a file is there");
    assert_eq!(fs::read_to_string(&file).expect("it is there still"), "a,b");
    // A link to a socket is no socket.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    listen(&link).expect_err("a link is there");
    assert!(link.exists() && file.exists());
}
