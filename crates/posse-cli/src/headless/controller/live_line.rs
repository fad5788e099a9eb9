//! Who is at work, for the line at the foot of a terminal.

use std::time::Duration;

use super::Controller;
use crate::headless::output_item::OutputItem;
use crate::headless::question_queue::QuestionQueue;
use crate::headless::render::live_line::Work;

/// Returns the output for a time at which nothing else may have happened.
pub(crate) fn pulse(controller: &mut Controller, now: Duration) -> Vec<OutputItem> {
    let asked = controller.plan.terminal.as_ref();
    let asked = asked.and_then(QuestionQueue::first).is_some();
    let work = match () {
        // A person reads and types.
        () if asked || controller.finished => Work::Nobody,
        () if controller.ending.is_interrupted() => Work::Stopping,
        () if controller.is_busy() => Work::Main,
        () if controller.waited_for() > 0 => Work::Background(controller.waited_for()),
        () => Work::Nobody,
    };
    controller.renderer.pulse(now, work)
}

/// Returns true if there is such a line.
pub(crate) fn is_wanted(controller: &Controller) -> bool {
    controller.renderer.has_live_line()
}
