//! Enums on the wire: objects that are told apart by their `type`.

use serde::Deserialize;
use serde_json::value::RawValue;

/// An enum whose variants are told apart by `type`.
pub(super) trait Tagged {
    /// Returns true if a variant has this `type`.
    fn knows(kind: &str) -> bool;
}

/// Declares an enum of objects with a `type`, the variant's name in snake case.
///
/// serde's own reader of such enums copies an object into values before it knows the type, and JSON
/// that is to be kept as it was written ([`RawJson`](crate::RawJson)) is lost that way. This one reads
/// the text twice: the type, then the fields.
macro_rules! tagged {
    (
        $(#[$about:meta])*
        enum $name:ident {
            $(
                $(#[$of_variant:meta])*
                $variant:ident { $( $(#[$of_field:meta])* $field:ident: $type:ty, )* }
            )*
        }
    ) => {
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        $(#[$about])*
        pub(super) enum $name {
            $( $(#[$of_variant])* $variant { $( $(#[$of_field])* $field: $type, )* }, )*
        }

        const _: () = {
            #[derive(serde::Deserialize)]
            #[serde(rename_all = "snake_case")]
            enum Kind {
                $( $variant, )*
            }

            impl $crate::wire::tagged::Tagged for $name {
                fn knows(kind: &str) -> bool {
                    use serde::de::IntoDeserializer;
                    use serde::de::value::{Error, StrDeserializer};
                    let kind: StrDeserializer<'_, Error> = kind.into_deserializer();
                    <Kind as serde::Deserialize>::deserialize(kind).is_ok()
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    #[derive(serde::Deserialize)]
                    struct Tag {
                        r#type: Kind,
                    }
                    let text = <&serde_json::value::RawValue>::deserialize(from)?;
                    let tag: Tag = $crate::wire::tagged::read(text).map_err(serde::de::Error::custom)?;
                    match tag.r#type {
                        $(
                            Kind::$variant => {
                                #[derive(serde::Deserialize)]
                                struct Fields {
                                    $( $(#[$of_field])* $field: $type, )*
                                }
                                let Fields { $( $field, )* } = $crate::wire::tagged::read(text)
                                    .map_err(serde::de::Error::custom)?;
                                Ok(Self::$variant { $( $field, )* })
                            }
                        )*
                    }
                }
            }
        };
    };
}

/// Reads an object, ignoring fields that `T` does not have.
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, serde_json::Error> {
    // serde would take a list for a struct.
    if !text.get().starts_with('{') {
        return Err(serde::de::Error::custom("not an object"));
    }
    serde_json::from_str(text.get())
}
