//! What people can name in the store that they mean.

pub(crate) use posse_store::{NamedSession, StoredName, StoredNames};

use crate::config::store::StoreArgs;
use crate::config::store_choice::meant_store;

/// Returns the names in the store that flags, environment or settings name. A server has none
/// here: a key press must not wait for a network.
pub(crate) fn stored_names(store: &StoreArgs) -> Option<StoredNames> {
    StoredNames::open(meant_store(store).ok()?.place.file()?)
}
