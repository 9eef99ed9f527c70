//! Sessions that any bytes are given to.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::client::request;
use crate::cut_anywhere::check;

/// Names of all commands, and words that follow them.
const WORDS: &str = "get set mget mset del unlink exists touch type append strlen getrange substr \
    getset getdel getex setnx setex psetex msetnx incr decr incrby decrby incrbyfloat expire \
    pexpire expireat pexpireat expiretime pexpiretime ttl pttl persist rename renamenx copy keys \
    scan randomkey dbsize flushdb flushall swapdb select move object memory ping echo hello auth \
    reset quit client command config info lolwut time multi exec discard watch unwatch subscribe \
    psubscribe unsubscribe punsubscribe publish pubsub acl slowlog latency save lastsave \
    sw.create sw.drop sw.tables sw.info sw.put sw.get sw.mput sw.mget sw.remove sw.exists sw.add \
    sw.madd sw.counter sw.cas sw.update sw.range sw.revrange sw.scan sw.aggregate \
    sw.disaggregate sw.check \
    nx xx gt lt ex px exat pxat keepttl persist count match limit select by where using n count \
    sum(n) n:i64le layout engine ordered hash record fixed8 entries chunk keys add min max list \
    setuser getuser deluser whoami cat on off reset nopass >p ~* &* +@all -@all get docs encoding \
    default sync async yes no reply skip tracking kill id 2 3 0 1 -1 7 99 * ( [ - + a b t";

fn word() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&'static str> = WORDS.split_whitespace().collect();
    prop_oneof![
        12 => prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..12),
    ]
}

/// A request of many parts, one on a line, or bytes that are none.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words = || vec(word(), 1..7);
    prop_oneof![
        12 => words().prop_map(|words| {
            request(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
        }),
        6 => words().prop_map(|words| [words.join(&b' '), b"\r\n".to_vec()].concat()),
        1 => vec(any::<u8>(), 0..9),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 1024 }))]

    #[test]
    fn any_bytes_are_answered_however_they_are_cut(
        pieces in vec(piece(), 1..40),
        step in 1_usize..40,
    ) {
        check(&pieces.concat(), step);
    }
}
