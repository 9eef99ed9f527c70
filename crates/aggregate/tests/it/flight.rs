//! What the tests aggregate: objects of fixed width, some of them cut off or with NaN.
//!
//! ```text
//! key:   number u16 be, "/", class u8
//! value: delay i32 le, hour u8, weight f64 be, carrier 2 bytes, gate i16 le (-1: missing)
//!        0             4        5              13               15 ... 17
//! ```

use proptest::prelude::*;

pub(crate) const LAYOUT: &str = "delay:i32le, hour:u8@4, weight:f64be@5, carrier:text2@13, \
    gate:i16le@15?-1, class:key.u8@3";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flight {
    pub(crate) number: u16,
    pub(crate) class: u8,
    pub(crate) delay: i32,
    pub(crate) hour: u8,
    /// In eighths, so that sums of a few are exact in floats; none: NaN.
    pub(crate) weight: Option<i32>,
    pub(crate) carrier: &'static str,
    pub(crate) gate: Option<i16>,
    /// Bytes of the value that are there.
    pub(crate) len: usize,
}

pub(crate) const WHOLE: usize = 17;
pub(crate) const CARRIERS: [&str; 4] = ["AA", "B6", "UA", "US"];

impl Flight {
    pub(crate) fn key(&self) -> Vec<u8> {
        [&self.number.to_be_bytes()[..], b"/", &[self.class]].concat()
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let weight = self.weight.map_or(f64::NAN, |weight| f64::from(weight) / 8.0);
        let gate = self.gate.unwrap_or(-1);
        let mut value = self.delay.to_le_bytes().to_vec();
        value.push(self.hour);
        value.extend(weight.to_be_bytes());
        value.extend(self.carrier.as_bytes());
        value.extend(gate.to_le_bytes());
        value.truncate(self.len);
        value
    }
}

fn flight(damage: u32) -> impl Strategy<Value = Flight> {
    let delay = prop_oneof![-20..40_i32, -20_000..20_000];
    let weight = prop_oneof![50 => (-80..80_i32).prop_map(Some), damage => Just(None)];
    let gate = prop_oneof![4 => (0..5_i16).prop_map(Some), 1 => Just(None)];
    let len = prop_oneof![50 => Just(WHOLE), damage => 0..WHOLE];
    let carrier = prop::sample::select(&CARRIERS[..]);
    (0..4_u8, delay, 0..24_u8, weight, carrier, gate, len).prop_map(
        |(class, delay, hour, weight, carrier, gate, len)| Flight {
            number: 0,
            class,
            delay,
            hour,
            weight,
            carrier,
            gate,
            len,
        },
    )
}

/// Flights with different keys, in no order; `damage` of some 50 are cut off or have NaN.
pub(crate) fn flights(damage: u32) -> impl Strategy<Value = Vec<Flight>> {
    prop::collection::vec(flight(damage), 0..60).prop_map(|mut flights| {
        for (at, flight) in flights.iter_mut().enumerate() {
            // Neither ascending nor descending.
            flight.number = (at as u16).wrapping_mul(40_503);
        }
        flights
    })
}
