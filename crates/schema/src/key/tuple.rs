//! Tuples of up to eight components, one after the other: the first decides, then the second.

use super::{DecodeError, Decoder, KeyDecode, KeyEncode};

macro_rules! tuple {
    ($($name:ident $index:tt)*) => {
        impl<$($name: KeyEncode),*> KeyEncode for ($($name,)*) {
            fn encode_to(&self, out: &mut Vec<u8>) {
                $(self.$index.encode_to(out);)*
            }
        }
        impl<$($name: KeyDecode),*> KeyDecode for ($($name,)*) {
            fn decode_from(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Ok(($($name::decode_from(decoder)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0 B 1);
tuple!(A 0 B 1 C 2);
tuple!(A 0 B 1 C 2 D 3);
tuple!(A 0 B 1 C 2 D 3 E 4);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
