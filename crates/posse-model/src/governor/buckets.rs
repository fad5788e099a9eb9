//! The rate limits of an account and model together: requests, input, output and all tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use posse_port::model::RateLimits;
use posse_protocol::Usage;

use super::bucket::Bucket;
use super::limits::AccountLimits;

/// Estimate from which on a request tells how good estimates are.
const TELLING: f64 = 1_000.0;
/// Time after which the provider has certainly received a request.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// Weight of the latest reply in the expected length of the next one.
const LATEST: f64 = 0.1;
/// Weight of the latest prompt in what prompts are expected to be beyond their estimates.
const FORGOTTEN: f64 = 0.005;
/// Limits of that correction.
const CORRECTION: (f64, f64) = (0.05, 4.0);

/// Tokens that a request is expected to use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// The caller's estimate of the input.
    estimate: f64,
    pub(super) input: f64,
    pub(super) output: f64,
}

/// The buckets, and the requests that the provider may not have counted yet.
#[derive(Debug)]
pub(super) struct Buckets {
    requests: Bucket,
    input: Bucket,
    output: Bucket,
    tokens: Bucket,
    /// Requests by number of admission that the provider may not have received, with their time.
    uncounted: BTreeMap<u64, (Duration, Need)>,
    /// Sum of their needs.
    uncounted_need: Need,
    /// Expected length of a reply; zero until there was one.
    expected_output: f64,
    /// What prompts have been at most lately, as a multiple of their estimates: one that is larger
    /// than it was believed is refused.
    correction: f64,
}

impl Buckets {
    pub(super) fn new(limits: &AccountLimits) -> Self {
        Self {
            requests: Bucket::new(limits.requests),
            input: Bucket::new(limits.input_tokens),
            output: Bucket::new(limits.output_tokens),
            tokens: Bucket::new(limits.tokens),
            uncounted: BTreeMap::new(),
            uncounted_need: Need::default(),
            expected_output: 0.0,
            correction: 1.0,
        }
    }

    /// Returns what a request needs whose uncached input is estimated.
    pub(super) fn need(&self, estimate: u64) -> Need {
        let estimate = estimate as f64;
        Need {
            estimate,
            input: estimate * self.correction,
            output: self.expected_output,
        }
    }

    /// Returns how long it takes until a request may be sent; zero if it may be sent now.
    pub(super) fn short_for(&mut self, now: Duration, need: Need) -> Duration {
        let all = need.input + need.output;
        [
            self.requests.short_for(now, 1.0),
            self.input.short_for(now, need.input),
            self.output.short_for(now, need.output),
            self.tokens.short_for(now, all),
        ]
        .into_iter()
        .max()
        .unwrap_or_default()
    }

    /// Debits a request that is sent now.
    pub(super) fn admit(&mut self, now: Duration, admission: u64, need: Need) {
        self.requests.take(now, 1.0);
        self.input.take(now, need.input);
        self.output.take(now, need.output);
        self.tokens.take(now, need.input + need.output);
        self.uncounted.insert(admission, (now, need));
        self.uncounted_need.input += need.input;
        self.uncounted_need.output += need.output;
    }

    /// Notes that a request was answered or given up: the provider has counted it, or never will.
    pub(super) fn counted(&mut self, admission: u64) {
        if let Some((_, need)) = self.uncounted.remove(&admission) {
            self.uncounted_need.input -= need.input;
            self.uncounted_need.output -= need.output;
        }
        if self.uncounted.is_empty() {
            // Sums of floats drift.
            self.uncounted_need = Need::default();
        }
    }

    /// Takes over what the response to a request tells that was sent some time ago.
    pub(super) fn told(
        &mut self,
        now: Duration,
        admission: u64,
        sent: Duration,
        limits: &RateLimits,
    ) {
        // The provider had received what was sent before this request.
        while let Some((earliest, (sent, _))) = self.uncounted.first_key_value()
            && (*earliest <= admission || now.saturating_sub(*sent) >= UNDER_WAY)
        {
            let earliest = *earliest;
            self.counted(earliest);
        }
        let (requests, need) = (self.uncounted.len() as f64, self.uncounted_need);
        // The provider counts a request when it arrives, and answers later.
        let age = now.saturating_sub(sent).min(UNDER_WAY);
        let tell = |bucket: &mut Bucket, allowance, uncounted| {
            if let Some(allowance) = allowance {
                bucket.told(now, admission, allowance, age, uncounted);
            }
        };
        tell(&mut self.requests, limits.requests, requests);
        tell(&mut self.input, limits.input_tokens, need.input);
        tell(&mut self.output, limits.output_tokens, need.output);
        // Beside the others it repeats the one that is the tightest at the moment.
        let repeats = limits.input_tokens.is_some() || limits.output_tokens.is_some();
        let tokens = limits.tokens.filter(|_| !repeats);
        tell(&mut self.tokens, tokens, need.input + need.output);
    }

    /// Takes in that a request was one too many.
    pub(super) fn refused(
        &mut self,
        now: Duration,
        admission: u64,
        need: Need,
        retry_after: Option<Duration>,
    ) {
        let refuse = |bucket: &mut Bucket, need| bucket.refused(now, admission, need, retry_after);
        refuse(&mut self.requests, 1.0);
        refuse(&mut self.input, need.input);
        refuse(&mut self.output, need.output);
        refuse(&mut self.tokens, need.input + need.output);
    }

    /// Replaces a request's estimate by what it has used. Reads of the cache do not count.
    pub(super) fn settle(&mut self, now: Duration, admission: u64, need: Need, usage: &Usage) {
        let input = (usage.input + usage.cache_write_5m + usage.cache_write_1h) as f64;
        let output = usage.output as f64;
        // What the provider has told since then has this request in it.
        let correct = |bucket: &mut Bucket, used: f64| {
            if bucket.counts_itself() || !bucket.is_told(admission) {
                bucket.take(now, used);
            }
        };
        correct(&mut self.input, input - need.input);
        correct(&mut self.tokens, input + output - need.input - need.output);
        correct(&mut self.output, output - need.output);
        // Small ones say more of cache entries that have expired than of estimates.
        if input > 0.0 && need.estimate >= TELLING {
            let ratio = input / need.estimate.max(1.0);
            let (low, high) = CORRECTION;
            let faded = self.correction + FORGOTTEN * (ratio - self.correction);
            self.correction = ratio.max(faded).clamp(low, high);
        }
        if output > 0.0 {
            self.expected_output = match self.expected_output > 0.0 {
                true => self.expected_output + LATEST * (output - self.expected_output),
                false => output,
            };
        }
    }
}
