//! Conversions between an inner struct and its form on the wire, where both have the same fields.

/// Implements `From` in both directions. Fields after `each` are lists, whose elements are converted.
macro_rules! both_ways {
    ($inner:ident, $wire:ident { $($field:ident),* } $( each { $($list:ident),* } )?) => {
        impl From<$inner> for $wire {
            fn from(from: $inner) -> Self {
                Self {
                    $( $field: from.$field.into(), )*
                    $( $( $list: from.$list.into_iter().map(Into::into).collect(), )* )?
                }
            }
        }

        impl From<$wire> for $inner {
            fn from(from: $wire) -> Self {
                Self {
                    $( $field: from.$field.into(), )*
                    $( $( $list: from.$list.into_iter().map(Into::into).collect(), )* )?
                }
            }
        }
    };
}
