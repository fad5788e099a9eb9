//! Who goes when: some cases by hand, then any order of deeds against a plain model, then real threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn lead(entry: Ticket) -> WarmupLead {
    match entry {
        Ticket::Go(Some(lead)) => lead,
        other => panic!("does not lead: {other:?}"),
    }
}

fn waiting(entry: Ticket) -> WarmupWaiters {
    match entry {
        Ticket::Wait(waiting) => waiting,
        other => panic!("does not wait: {other:?}"),
    }
}

fn poll(waiting: &mut WarmupWaiters) -> Poll<Option<WarmupLead>> {
    Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn one_goes_and_the_others_follow_when_its_reply_begins() {
    let warmup = Arc::new(CacheWarmup::default());
    let first = lead(warmup.enter(SECOND));
    let mut others: Vec<WarmupWaiters> =
        (0..1_000).map(|_| waiting(warmup.enter(SECOND))).collect();
    assert!(others.iter_mut().all(|other| poll(other).is_pending()));
    warmup.begun(2 * SECOND);
    drop(first);
    assert!(
        others
            .iter_mut()
            .all(|other| matches!(poll(other), Poll::Ready(None)))
    );
    assert!(
        matches!(warmup.enter(301 * SECOND), Ticket::Go(None)),
        "it can be read"
    );
    let _again = lead(warmup.enter(302 * SECOND));
    let _waits = waiting(warmup.enter(302 * SECOND));
    assert!(warmup.room().queue.len() == 1);
}

#[test]
fn whoever_is_next_leads_when_the_leader_fails() {
    let warmup = Arc::new(CacheWarmup::default());
    let first = lead(warmup.enter(SECOND));
    let [mut second, third, mut fourth] = [0; 3].map(|_| waiting(warmup.enter(SECOND)));
    drop(third);
    drop(first);
    assert!(poll(&mut fourth).is_pending());
    let Poll::Ready(Some(next)) = poll(&mut second) else {
        panic!("the second does not lead")
    };
    drop(next);
    let Poll::Ready(Some(last)) = poll(&mut fourth) else {
        panic!("the fourth does not lead")
    };
    drop(last);
    drop(lead(warmup.enter(SECOND)));
}

#[test]
fn a_lead_that_was_not_heard_of_is_the_next_ones() {
    let warmup = Arc::new(CacheWarmup::default());
    let first = lead(warmup.enter(SECOND));
    let (second, mut third) = (waiting(warmup.enter(SECOND)), waiting(warmup.enter(SECOND)));
    drop(first);
    drop(second);
    assert!(matches!(poll(&mut third), Poll::Ready(Some(_))));
}

#[test]
fn any_reply_of_a_sibling_lets_the_others_go() {
    let warmup = Arc::new(CacheWarmup::default());
    let slow = lead(warmup.enter(SECOND));
    let mut other = waiting(warmup.enter(SECOND));
    warmup.begun(2 * SECOND);
    assert!(matches!(poll(&mut other), Poll::Ready(None)));
    drop(slow);
    assert!(
        matches!(warmup.enter(3 * SECOND), Ticket::Go(None)),
        "what was written stays"
    );
}

/// What can happen. Who is meant is counted among those it can happen to.
#[derive(Clone, Debug)]
enum Deed {
    Enter,
    Begin { who: Index },
    Fail { who: Index },
    Leave { who: Index },
    Pass { seconds: u64 },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        5 => Just(Deed::Enter),
        1 => any::<Index>().prop_map(|who| Deed::Begin { who }),
        3 => any::<Index>().prop_map(|who| Deed::Fail { who }),
        2 => any::<Index>().prop_map(|who| Deed::Leave { who }),
        1 => (1..400_u64).prop_map(|seconds| Deed::Pass { seconds }),
    ]
}

/// The same said plainly: who calls, whether with the lead, and who waits, in order.
#[derive(Debug, Default)]
struct Plain {
    now: u64,
    begun: Option<u64>,
    calling: Vec<(usize, bool)>,
    waiting: Vec<usize>,
}

impl Plain {
    fn enter(&mut self, name: usize) {
        let readable = self.begun.is_some_and(|begun| self.now - begun < 300);
        let led = self.calling.iter().any(|(_, leads)| *leads);
        match (readable, led) {
            (true, _) => self.calling.push((name, false)),
            (false, false) => self.calling.push((name, true)),
            (false, true) => self.waiting.push(name),
        }
    }

    fn gone(&mut self, led: bool) {
        if led && !self.waiting.is_empty() {
            let next = self.waiting.remove(0);
            self.calling.push((next, true));
        }
    }

    fn begin(&mut self) {
        self.begun = Some(self.now);
        self.calling
            .extend(self.waiting.drain(..).map(|name| (name, false)));
    }
}

/// The real thing, with whatever everybody holds.
#[derive(Default)]
struct Real {
    warmup: Arc<CacheWarmup>,
    calling: Vec<(usize, Option<WarmupLead>)>,
    waiting: Vec<(usize, WarmupWaiters)>,
}

impl Real {
    /// Whoever was told something goes on.
    fn settle(&mut self) {
        for (name, mut waiting) in std::mem::take(&mut self.waiting) {
            match poll(&mut waiting) {
                Poll::Ready(lead) => self.calling.push((name, lead)),
                Poll::Pending => self.waiting.push((name, waiting)),
            }
        }
    }
}

fn play(deeds: &[Deed]) -> Result<(), TestCaseError> {
    let (mut plain, mut real) = (Plain::default(), Real::default());
    for (name, deed) in deeds.iter().enumerate() {
        let now = Duration::from_secs(plain.now);
        match deed {
            Deed::Enter => {
                plain.enter(name);
                match real.warmup.enter(now) {
                    Ticket::Go(lead) => real.calling.push((name, lead)),
                    Ticket::Wait(waiting) => real.waiting.push((name, waiting)),
                }
            }
            Deed::Begin { who } | Deed::Fail { who } if !plain.calling.is_empty() => {
                let at = who.index(plain.calling.len());
                let (name, led) = plain.calling.remove(at);
                let at = real.calling.iter().position(|(other, _)| *other == name);
                let (_, lead) = real.calling.remove(at.unwrap());
                if matches!(deed, Deed::Begin { .. }) {
                    plain.begin();
                    real.warmup.begun(now);
                }
                drop(lead);
                plain.gone(led);
            }
            Deed::Leave { who } if !plain.waiting.is_empty() => {
                let name = plain.waiting.remove(who.index(plain.waiting.len()));
                real.waiting.retain(|(other, _)| *other != name);
            }
            Deed::Begin { .. } | Deed::Fail { .. } | Deed::Leave { .. } => {}
            Deed::Pass { seconds } => plain.now += seconds,
        }
        real.settle();
        let mut calling: Vec<_> = real
            .calling
            .iter()
            .map(|(name, lead)| (*name, lead.is_some()))
            .collect();
        calling.sort_unstable();
        let mut expected = plain.calling.clone();
        expected.sort_unstable();
        prop_assert_eq!(calling, expected);
        let waiting: Vec<usize> = real.waiting.iter().map(|(name, _)| *name).collect();
        prop_assert_eq!(&waiting, &plain.waiting);
        let led = plain.calling.iter().filter(|(_, leads)| *leads).count();
        prop_assert!(led <= 1);
        prop_assert!(
            waiting.is_empty() || led == 1,
            "{} wait for nobody",
            waiting.len()
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_happens_nobody_waits_for_nobody(deeds in prop::collection::vec(deed(), 0..60)) {
        play(&deeds)?;
    }
}

#[test]
fn nobody_is_stuck_whatever_threads_do() {
    for round in 0..50_usize {
        let (warmup, passed) = (Arc::new(CacheWarmup::default()), AtomicUsize::new(0));
        let one = |number: usize| {
            let (warmup, passed) = (&warmup, &passed);
            async move {
                let mut entry = Box::pin(warmup.enter(SECOND).passed());
                if number.is_multiple_of(3) {
                    // Looks once, and leaves.
                    drop(std::future::poll_fn(|cx| Poll::Ready(entry.as_mut().poll(cx))).await);
                    return;
                }
                let lead = entry.await;
                passed.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                if lead.is_some() && number > round {
                    warmup.begun(SECOND);
                }
                drop(lead);
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let some = (0..25).map(move |number| one(4 * number + thread));
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .build()
                        .unwrap();
                    runtime.block_on(all_of(some.map(Box::pin).collect()));
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 66);
    }
}

/// Ends when all have.
async fn all_of<F: Future<Output = ()> + Unpin>(mut all: Vec<F>) {
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| Pin::new(one).poll(cx).is_pending());
        if all.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
