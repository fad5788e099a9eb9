//! Mail for programs.

use posse_port::store::Receipt;
use posse_protocol::Mail;
use serde_json::{Value, json};

use crate::output::time::moment;

/// Returns in one word whether a message was read.
pub(crate) fn state(mail: &Mail) -> &'static str {
    if mail.shown_in.is_some() {
        "shown"
    } else {
        "waits"
    }
}

/// Returns a message to `to` for programs, with its text.
pub(crate) fn object(to: &str, mail: &Mail) -> Value {
    json!({
        "id": mail.id, "to": to, "agent_id": mail.to, "number": mail.number, "from": mail.from.name(),
        "kind": mail.kind, "summary": mail.summary, "text": mail.body, "sent_at": moment(mail.sent_ms),
        "state": state(mail),
    })
}

/// Returns for programs that a message is in an inbox.
pub(crate) fn receipt(receipt: &Receipt) -> Value {
    json!({
        "to": receipt.name, "agent_id": receipt.to, "number": receipt.number,
    })
}
