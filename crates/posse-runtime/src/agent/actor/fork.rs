//! Notes where the agent stands when it asks for forks.

use std::sync::Arc;

use posse_protocol::ContentBlock;

use crate::agent::actor::Actor;
use crate::agent::step::OpenCalls;
use crate::history::fork_point::Branch;
use crate::prompt;
use crate::prompt::side_query::placeholders;

impl Actor {
    /// Where the agent stands with the calls of its last reply open; made once for all of them.
    pub(super) fn branch(&mut self) -> Arc<Branch> {
        // It ends with the reply whose calls are open.
        let seq = self.history.next_seq().saturating_sub(1);
        if let Some(branch) = self.branch.as_ref().filter(|branch| branch.seq == seq) {
            return Arc::clone(branch);
        }
        let open = self.machine.open_calls();
        let calls: Vec<String> = open.into_iter().flat_map(OpenCalls::call_ids).collect();
        let mut answers = placeholders(&calls);
        answers.push(ContentBlock::text(prompt::fork_rules()));
        let branch = Arc::new(Branch {
            seq,
            preamble: self.preamble.clone(),
            history: self.history.forked(),
            segments: self
                .history
                .segments(self.identity.agent, self.segments.clone()),
            head: self.ports.model.opening(&answers),
            previous_reply: self.previous_reply.clone(),
            paid: self.paid.of_parent(),
            reuse: self.reuse,
            warmth: Arc::default(),
            seen: self.seen.fork(),
            told: self.known.told,
            terms: self.terms.as_deref().cloned(),
        });
        self.branch = Some(Arc::clone(&branch));
        branch
    }
}
