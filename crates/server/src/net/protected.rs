//! Clients that are not served while no password is set: those of other machines, and pages in a
//! browser of this one.

use std::net::{IpAddr, Ipv6Addr};

use crate::Service;

/// The answer, word by word that of Redis: people look for it.
const DENIED: &[u8] = b"-DENIED Redis is running in protected mode because protected mode is \
enabled and no password is set for the default user. In this mode connections are only accepted \
from the loopback interface. If you want to connect from external computers to Redis you may adopt \
one of the following solutions: 1) Just disable protected mode sending the command 'CONFIG SET \
protected-mode no' from the loopback interface by connecting to Redis from the same host the server \
is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use \
CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected \
mode by editing the Redis configuration file, and setting the protected mode option to 'no', and \
then restarting the server. 3) If you started the server manually just for testing, restart it with \
the '--protected-mode no' option. 4) Setup a an authentication password for the default user. NOTE: \
You only need to do one of the above things in order for the server to start accepting connections \
from the outside.\r\n";

/// The answer to a client of this address, if it is not served.
pub(super) fn refusal(service: &Service, address: IpAddr) -> Option<&'static [u8]> {
    let is_outside = !address.to_canonical().is_loopback();
    (is_outside && service.users.serves_this_machine_only()).then_some(DENIED)
}

/// Tells if the header `Host` names this machine, by an address or as `localhost`.
///
/// A page that has a name of its own resolved to an address of this machine sends that name: to
/// its browser both are one place, and it would read answers.
pub(super) fn is_of_this_machine(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(name, port)| {
            name.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':'))
        });
    }
    let name = host.split_once(':').map_or(host, |(name, _port)| name);
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    // No name system has names below it: RFC 6761.
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use sapwood::Db;

    use super::*;
    use crate::acl::{self, ProtectedMode, Secret};
    use crate::service::Options;

    fn service(users: acl::Options) -> Service {
        let options = Options { users, ..Options::default() };
        Service::new(Db::in_memory(), options).expect("tables in memory open")
    }

    fn is_refused(service: &Service, address: &str) -> bool {
        refusal(service, address.parse().expect("an address")).is_some()
    }

    #[test]
    fn without_a_password_this_machine_alone_is_served() {
        let open = service(acl::Options::default());
        for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_refused(&open, address), "{address}");
        }
        for address in ["10.0.0.1", "8.8.8.8", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(is_refused(&open, address), "{address}");
        }
        open.users.set_default_password(Some(&Secret::from("said")));
        assert!(!is_refused(&open, "10.0.0.1"));
        open.users.set_default_password(None);
        assert!(is_refused(&open, "10.0.0.1"));
        open.users.set_protected_mode(ProtectedMode::Off);
        assert!(!is_refused(&open, "10.0.0.1"));
    }

    #[test]
    fn options_open_the_door_as_well() {
        let with_password = acl::Options { requirepass: Some("x".into()), ..Default::default() };
        assert!(!is_refused(&service(with_password), "10.0.0.1"));
        let unprotected = acl::Options { protected_mode: ProtectedMode::Off, ..Default::default() };
        assert!(!is_refused(&service(unprotected), "10.0.0.1"));
    }

    #[test]
    fn this_machine_is_named_by_an_address_or_as_localhost() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "10.0.0.1",
            "[::1]",
            "[::1]:80",
            "localhost",
            "LocalHost:80",
        ] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in ["localhost.", "app.localhost:80"] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in [
            "",
            "page.example",
            "page.example:80",
            "localhost.page.example",
            "127.0.0.1.page.example",
            "notlocalhost",
            "[page.example]",
            "[::1",
            "[::1]page",
            "1.2.3:80",
        ] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }

    #[test]
    fn the_answer_is_one_line() {
        assert!(DENIED.starts_with(b"-DENIED Redis is running in protected mode"));
        assert!(DENIED.ends_with(b"\r\n"));
        assert_eq!(DENIED.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
