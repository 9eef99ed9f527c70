//! Sketches of Apache DataSketches, as Druid's extensions of the same names feed and merge them.
//!
//! Theirs is the extension `druid-datasketches`: an HLL sketch hashes texts as UTF-16 unless a schema says otherwise, and a
//! theta sketch as UTF-8.

use datasketches::common::SearchCriteria;
use datasketches::hash::value::{canonical_float, raw_bytes};
use datasketches::hll::{self, HllSketch, HllType};
use datasketches::kll::{self, KllFloat};
use datasketches::theta::{
    CompactThetaSketch, ThetaANotB, ThetaIntersection, ThetaSketch, ThetaSketchBuilder,
    ThetaUnionBuilder,
};

use crate::error::{Error, Result};
use crate::schema::Utf;
use crate::value::Value;

impl From<datasketches::error::Error> for Error {
    fn from(error: datasketches::error::Error) -> Error {
        Error::Datasketch(error.message().to_owned())
    }
}

/// The mode of an HLL sketch that has registers, of 4 bits.
const HLL_4_REGISTERS: u8 = 0b0010;

/// How many different values, by the leading zeros of their hashes.
#[derive(Debug)]
pub(crate) struct HllUnion(hll::HllUnion);

impl HllUnion {
    pub(super) fn new(lg_k: u8) -> Result<HllUnion> {
        Ok(HllUnion(hll::HllUnion::new(lg_k)?))
    }

    pub(super) fn decode(lg_k: u8, bytes: &[u8]) -> Result<HllUnion> {
        let mut union = HllUnion::new(lg_k)?;
        // The library adds this byte to registers of 4 bits, and trusts that they stay below 64.
        if let [_, _, _, _, _, _, least, mode, ..] = *bytes
            && mode & 0b1111 == HLL_4_REGISTERS
            && least > 63 - 15
        {
            return Err(Error::Datasketch(format!("its least register is {least}")));
        }
        union.0.update(&HllSketch::deserialize(bytes)?);
        Ok(union)
    }

    pub(super) fn push(&mut self, value: &Value<'_>, texts: Utf) {
        match value {
            Value::Long(number) => self.0.update_value(*number),
            Value::Double(number) => self.0.update_value(canonical_float::from_f64(*number)),
            // The libraries pass over the empty text.
            Value::Text(text) if text.is_empty() => {}
            Value::Text(text) => match texts {
                Utf::Utf8 => self.0.update_value(raw_bytes::from_str(text)),
                Utf::Utf16 => {
                    let bytes = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                    self.0.update_value(raw_bytes::from_vec(bytes));
                }
            },
            Value::Null | Value::List(_) => {}
        }
    }

    pub(super) fn merge(&mut self, other: &HllUnion) {
        self.0.update(&other.0.to_sketch(HllType::Hll8));
    }

    pub(super) fn estimate(&self) -> f64 {
        self.0.estimate()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.to_sketch(HllType::Hll4).serialize()
    }
}

/// A sample of hashes, of which sets can be made.
#[derive(Debug)]
pub(crate) struct ThetaUnion {
    /// Sketches that were merged.
    union: datasketches::theta::ThetaUnion,
    /// Values that were added.
    values: Option<ThetaSketch>,
    lg_k: u8,
}

impl ThetaUnion {
    pub(super) fn new(lg_k: u8) -> Result<ThetaUnion> {
        let union = ThetaUnionBuilder::default().lg_k(lg_k).build()?;
        Ok(ThetaUnion { union, values: None, lg_k })
    }

    pub(super) fn decode(lg_k: u8, bytes: &[u8]) -> Result<ThetaUnion> {
        let mut union = ThetaUnion::new(lg_k)?;
        union.union.update(CompactThetaSketch::deserialize(bytes)?.as_view())?;
        Ok(union)
    }

    pub(super) fn push(&mut self, value: &Value<'_>) {
        let values = self.values.get_or_insert_with(|| {
            let sketch = ThetaSketchBuilder::default().lg_k(self.lg_k).build();
            sketch.expect("a union of the size was made")
        });
        match value {
            Value::Long(number) => values.update(*number),
            Value::Double(number) => values.update(canonical_float::from_f64(*number)),
            // The libraries pass over the empty text.
            Value::Text(text) if text.is_empty() => {}
            Value::Text(text) => values.update(raw_bytes::from_str(text)),
            Value::Null | Value::List(_) => {}
        }
    }

    pub(super) fn merge(&mut self, other: &ThetaUnion) {
        self.union.update(other.compact().as_view()).expect("all have the seed of the library");
    }

    fn compact(&self) -> CompactThetaSketch {
        let Some(values) = &self.values else { return self.union.to_sketch(true) };
        let mut all = ThetaUnion::new(self.lg_k).expect("this one was made");
        for part in [self.union.to_sketch(false).as_view(), values.as_view()] {
            all.union.update(part).expect("all have the seed of the library");
        }
        all.union.to_sketch(true)
    }

    pub(crate) fn estimate(&self) -> f64 {
        self.compact().estimate()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.compact().serialize()
    }

    /// The union of sets.
    pub(crate) fn union<'s>(
        lg_k: u8,
        sets: impl IntoIterator<Item = &'s ThetaUnion>,
    ) -> Result<ThetaUnion> {
        let mut all = ThetaUnion::new(lg_k)?;
        sets.into_iter().for_each(|set| all.merge(set));
        Ok(all)
    }

    /// What some sets, at least one, have in common.
    pub(crate) fn intersection<'s>(
        lg_k: u8,
        sets: impl IntoIterator<Item = &'s ThetaUnion>,
    ) -> Result<ThetaUnion> {
        let mut common = ThetaIntersection::default();
        for set in sets {
            common.update(set.compact().as_view())?;
        }
        let common = common.to_sketch(true).expect("there is at least one set");
        ThetaUnion::of(lg_k, &common)
    }

    /// What this set has, and another has not.
    pub(crate) fn without(&self, other: &ThetaUnion) -> Result<ThetaUnion> {
        let rest = ThetaANotB::default().compute(
            self.compact().as_view(),
            other.compact().as_view(),
            true,
        )?;
        ThetaUnion::of(self.lg_k, &rest)
    }

    fn of(lg_k: u8, set: &CompactThetaSketch) -> Result<ThetaUnion> {
        let mut union = ThetaUnion::new(lg_k)?;
        union.union.update(set.as_view())?;
        Ok(union)
    }
}

/// A KLL sketch of more values has more levels than the library reads.
const KLL_VALUES_MAX: u64 = 1 << 48;

fn expect_count(values: u64) -> Result<()> {
    match values <= KLL_VALUES_MAX {
        true => Ok(()),
        false => {
            Err(Error::Datasketch(format!("it has {values} values: {KLL_VALUES_MAX} are the most")))
        }
    }
}

/// A sample of numbers, of which quantiles can be told.
#[derive(Debug)]
pub(crate) struct KllSketch(kll::KllSketch<KllFloat<f64>>);

impl KllSketch {
    pub(super) fn new(k: u16) -> Result<KllSketch> {
        Ok(KllSketch(kll::KllSketch::new(k)?))
    }

    pub(super) fn decode(k: u16, bytes: &[u8]) -> Result<KllSketch> {
        let read = kll::KllSketch::deserialize(bytes)?;
        expect_count(read.n())?;
        if read.k() == k {
            return Ok(KllSketch(read));
        }
        let mut sketch = KllSketch::new(k)?;
        sketch.0.merge(&read)?;
        Ok(sketch)
    }

    /// # Errors
    /// As of [`merge`](Self::merge).
    pub(super) fn push(&mut self, value: &Value<'_>) -> Result<()> {
        let number = match value {
            Value::Long(number) => *number as f64,
            Value::Double(number) => *number,
            Value::Null | Value::Text(_) | Value::List(_) => return Ok(()),
        };
        expect_count(self.0.n() + 1)?;
        self.0.update(KllFloat::<f64>::new(number).expect("there is no NaN"));
        Ok(())
    }

    /// # Errors
    /// If they have too many values, as one that rows brought may say.
    pub(super) fn merge(&mut self, other: &KllSketch) -> Result<()> {
        expect_count(self.0.n() + other.0.n())?;
        Ok(self.0.merge(&other.0)?)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.n()
    }

    /// None of no numbers.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let found = self.0.quantile(share, SearchCriteria::Inclusive);
        found
            .expect("shares are 0 to 1")
            .map(KllFloat::into_inner)
            .filter(|number| number.is_finite())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.serialize()
    }
}
