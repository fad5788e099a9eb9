//! Asks the limits about a request, and refuses it in the words of its API.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Response};

use super::limit_headers;
use super::{Api, Exchange};
use crate::admitted::AdmittedRequest;
use crate::api_error::{ApiRefusal, kind_of};
use crate::body::PlayedBody;
use crate::limits::{Decision, LimitKind, LimitedRequest, Reaction, Refusal, Verdict};
use crate::record::Outcome;

impl Exchange<'_> {
    /// Returns the request in flight, or the response that refuses it.
    pub(super) fn admit(
        &self,
        model: &str,
        input_tokens: u64,
    ) -> Result<ControlFlow<Response<PlayedBody>, AdmittedRequest>, io::Error> {
        let account = self.credential();
        let request = LimitedRequest {
            account,
            model,
            input_tokens,
            arrived: self.arrived,
        };
        let (decision, name) = {
            let mut limiter = self.shared.limiter();
            let decision = limiter.ask(self.shared.pace.now(), &request);
            (decision, limiter.name_of(account).map(str::to_owned))
        };
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => {
                let refusal = ApiRefusal::invalid(format!("scripted model: {error}"));
                return Ok(ControlFlow::Break(self.refuse(&refusal, &[])));
            }
        };
        // A request is asked about once, so that nothing is set yet.
        let _ = self.limited_model.set(model.to_owned());
        self.shared
            .record
            .update(self.number, |request| request.account = name);
        match decision {
            Decision::Admitted(admission) => {
                self.record_verdict(Verdict::Within);
                let (limiter, pace) = (&self.shared.limiter, &self.shared.pace);
                Ok(ControlFlow::Continue(AdmittedRequest::new(
                    Arc::clone(limiter),
                    Arc::clone(pace),
                    admission,
                )))
            }
            Decision::Refused(refusal) => self.turn_away(&refusal).map(ControlFlow::Break),
        }
    }

    /// Returns the response of an outage to a request that no limit is about; none if there is no
    /// outage.
    pub(super) fn outage(&self) -> Result<Option<Response<PlayedBody>>, io::Error> {
        let outage = self.shared.limiter().outage(self.shared.pace.now());
        let refusal = outage.map(|(reaction, _)| Refusal {
            verdict: Verdict::Outage,
            reaction,
        });
        refusal.map(|refusal| self.turn_away(&refusal)).transpose()
    }

    /// Adds the headers that tell what is left of the limits.
    pub(super) fn tell_limits(&self, response: &mut Response<PlayedBody>) {
        let Some(model) = self.limited_model.get() else {
            return;
        };
        let (pace, account) = (&self.shared.pace, self.credential());
        let levels = self.shared.limiter().levels(pace.now(), account, model);
        let headers = match self.api {
            Api::Anthropic => limit_headers::anthropic(&levels, pace.wall()),
            Api::OpenAi => limit_headers::openai(&levels),
        };
        for (name, value) in headers {
            let header = (HeaderName::try_from(name), HeaderValue::try_from(value));
            if let (Ok(name), Ok(value)) = header {
                response.headers_mut().insert(name, value);
            }
        }
    }

    fn turn_away(&self, refusal: &Refusal) -> Result<Response<PlayedBody>, io::Error> {
        self.record_verdict(refusal.verdict);
        match refusal.reaction {
            Reaction::Disconnect => {
                let now = self.shared.pace.now().as_micros() as u64;
                self.shared.record.update(self.number, |request| {
                    (request.outcome, request.ended_us) = (Outcome::Broken, Some(now));
                });
                Err(io::Error::other("the script says so"))
            }
            Reaction::Status {
                status,
                retry_after,
            } => {
                let headers = [("retry-after", retry_after.map(|wait| wait.to_string()))];
                Ok(self.refuse(&self.words_of(status, refusal.verdict), &headers))
            }
        }
    }

    fn words_of(&self, status: u16, verdict: Verdict) -> ApiRefusal {
        let (kind, message) = match verdict {
            Verdict::Over(LimitKind::Concurrency) => (
                "requests",
                "Number of concurrent requests has exceeded your rate limit".into(),
            ),
            Verdict::Over(LimitKind::Requests) => (
                "requests",
                "This request would exceed your rate limit of requests per minute".into(),
            ),
            Verdict::Over(limit) => (
                "tokens",
                format!(
                    "This request would exceed your rate limit of {} per minute",
                    limit.name().replace('_', " ")
                ),
            ),
            Verdict::Held => (
                "requests",
                "This request came before the time that `retry-after` named".into(),
            ),
            Verdict::Within | Verdict::Outage => ("requests", "the script says so".into()),
        };
        let is_limit = status == 429 && self.api == Api::OpenAi;
        ApiRefusal {
            status,
            kind: if is_limit { kind } else { kind_of(status) }.to_owned(),
            message,
            code: is_limit.then(|| "rate_limit_exceeded".to_owned()),
        }
    }

    fn record_verdict(&self, verdict: Verdict) {
        self.shared
            .record
            .update(self.number, |request| request.verdict = Some(verdict));
    }

    /// Returns the credential, which stands for the account.
    fn credential(&self) -> &str {
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        let key = text("x-api-key").filter(|key| self.api == Api::Anthropic && !key.is_empty());
        let bearer = || text("authorization")?.strip_prefix("Bearer ");
        key.or_else(bearer).unwrap_or_default()
    }
}
