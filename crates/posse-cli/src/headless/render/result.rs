//! The result of a run: the JSON object, the exit code, and the text for people.

use posse_port::servers::ServerState;
use posse_protocol::{Cost, FaultClass, Limit, Misses, Outcome, RunEnd, Spent, Usage};
use posse_runtime::live::servers::ServerWatch;
use serde_json::{Map, Value, json};

use super::shape;
use crate::assemble::facts::SessionFacts;
use crate::error;
use crate::headless::session_spending::together;
use crate::output::grouped;
use crate::present::cache_misses::{in_words, of_reasons};
use crate::present::usage::usage;

/// Number of missed cache tokens from which a person is told.
const WORTH_A_WORD: u64 = 20_000;

/// Returns a run's end as one object.
pub(crate) fn result(facts: &SessionFacts, end: &RunEnd) -> Value {
    let (subtype, terminal_reason) = words(&end.outcome);
    let is_error = end.outcome != Outcome::Completed;
    let mut result = json!({
        "type": "result", "subtype": subtype, "is_error": is_error,
        "num_turns": end.turns, "duration_ms": end.duration_ms, "duration_api_ms": end.api_ms,
    });
    if is_error {
        let mut errors: Vec<Value> = Vec::new();
        errors.extend(complaint(&end.outcome).map(Value::from));
        result["errors"] = Value::from(errors);
    }
    if !is_error || (is_store_lost(&end.outcome) && !end.text.is_empty()) {
        result["result"] = Value::from(end.text.as_str());
    }
    if let Some(value) = &end.value {
        result["structured_output"] = shape::value(value);
    }
    result["stop_reason"] = json!(end.stop.as_ref().map(shape::stop_word));
    result["terminal_reason"] = terminal_reason.into();
    result["total_cost_usd"] = json!(cost(end).map(Cost::usd));
    result["usage"] = usage(&main_usage(end));
    result["modelUsage"] = Value::Object(
        together(end.spent.iter().chain(&end.below).cloned())
            .iter()
            .map(model_usage)
            .collect::<Map<_, _>>(),
    );
    result["cache"] = cache(end);
    let denials = end.denials.iter().map(|denial| {
        json!({"tool_name": denial.tool, "tool_use_id": denial.call, "tool_input": shape::value(&denial.input)})
    });
    result["permission_denials"] = Value::from(denials.collect::<Vec<_>>());
    result["session_id"] = json!(facts.session);
    let servers = servers(&facts.servers);
    if !servers.is_empty() {
        result["mcp_servers"] = servers.into();
    }
    if !facts.missing_guards.is_empty() {
        result["missing_guards"] = missing_guards(facts);
    }
    result
}

/// Returns the MCP servers, and whether they are connected.
pub(super) fn servers(watch: &ServerWatch) -> Vec<Value> {
    let server = |(name, state): (String, ServerState)| {
        let mut server = json!({"name": name, "status": state.as_str()});
        if let ServerState::Failed { why, .. } = state {
            server["error"] = json!(why);
        }
        server
    };
    watch.now().into_iter().map(server).collect()
}

/// Returns the hooks that would have guarded calls, and do not run.
pub(super) fn missing_guards(facts: &SessionFacts) -> Value {
    let guards = facts.missing_guards.iter();
    guards
        .map(|guard| json!({"file": guard.path.display().to_string(), "events": guard.events}))
        .collect()
}

/// Returns true if the text of the last reply is a result for people.
pub(super) fn has_text(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Completed | Outcome::Partial(_) | Outcome::Refused
    ) || is_store_lost(outcome)
}

/// Returns true if the store has failed: then what was said last may be nowhere else.
fn is_store_lost(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paused(fault) | Outcome::Failed(fault) if fault.class == FaultClass::Store)
}

/// Returns the exit code; `docs/cli.md` lists them.
pub(crate) fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Completed => 0,
        Outcome::Refused | Outcome::Failed(_) => error::FAILED,
        Outcome::Partial(_) | Outcome::Paused(_) => error::UNFINISHED,
        Outcome::Interrupted => error::INTERRUPTED,
    }
}

/// Returns what went wrong in one line; `None` if nothing did.
pub(crate) fn complaint(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Completed => return None,
        Outcome::Partial(Limit::Turns) => "the run reached its limit of turns".into(),
        Outcome::Partial(Limit::Budget) => "the budget does not allow another call".into(),
        Outcome::Partial(Limit::Output) => "the reply was cut at its length limit".into(),
        Outcome::Partial(Limit::Tasks) => "the team has open tasks".into(),
        Outcome::Partial(Limit::Hook) => "a hook has ended the run".into(),
        Outcome::Partial(Limit::Repetition) => {
            "the agent repeated a call that failed in the same way each time".into()
        }
        Outcome::Partial(Limit::Context) => {
            "the conversation fills the model's context window".into()
        }
        Outcome::Refused => "the model declined to continue".into(),
        Outcome::Interrupted => "interrupted".into(),
        Outcome::Paused(fault) => format!("paused: {}", fault.message),
        Outcome::Failed(fault) => fault.message.clone(),
    })
}

/// Returns what to do about it.
pub(crate) fn advice(outcome: &Outcome, again: &str) -> Option<String> {
    let go_on = format!("`{again}`");
    Some(match outcome {
        Outcome::Completed | Outcome::Refused | Outcome::Interrupted => return None,
        Outcome::Partial(Limit::Turns) => format!("--max-turns raises it; continue with {go_on}"),
        Outcome::Partial(Limit::Budget) => {
            format!(
                "--max-budget-usd, --max-budget-tokens and --max-time raise it; continue with \
                 {go_on}"
            )
        }
        Outcome::Partial(Limit::Output) => format!("--max-tokens raises it; continue with {go_on}"),
        Outcome::Partial(Limit::Tasks | Limit::Hook) => format!("continue with {go_on}"),
        Outcome::Partial(Limit::Repetition) => {
            format!("say what it should do instead: {go_on}")
        }
        Outcome::Partial(Limit::Context) => "start a new session with a shorter task".into(),
        Outcome::Paused(fault) => match error::for_fault(fault) {
            Some(hint) => format!("{hint}; then continue with {go_on}"),
            None => format!("continue with {go_on}"),
        },
        Outcome::Failed(fault) if fault.class == FaultClass::Fenced => {
            format!("the other process has it now; --fork-session with {go_on} makes a copy")
        }
        Outcome::Failed(fault) => return error::for_fault(fault),
    })
}

/// Returns what the whole tree read from the cache and missed there.
fn cache(end: &RunEnd) -> Value {
    let all = end
        .spent
        .iter()
        .chain(&end.below)
        .fold(Usage::default(), |sum, spent| sum + spent.usage);
    let mut cache = figures(&all);
    cache["missed_tokens"] = end.misses.tokens().into();
    cache["missed_why"] = of_reasons(&end.misses.missed);
    let agents = end.misses.agents.iter().map(|line| {
        let mut told = json!({"agent_id": line.agent, "path": line.path});
        if let (Some(told), Value::Object(figures)) = (told.as_object_mut(), figures(&line.usage)) {
            told.extend(figures);
        }
        told["missed_tokens"] = line.tokens().into();
        told["missed_why"] = of_reasons(&line.missed);
        told
    });
    cache["agents"] = Value::from(agents.collect::<Vec<_>>());
    cache["other_agents"] = end.misses.others.into();
    cache
}

fn figures(usage: &Usage) -> Value {
    json!({
        "read_tokens": usage.cache_read, "written_5m_tokens": usage.cache_write_5m,
        "written_1h_tokens": usage.cache_write_1h,
    })
}

/// Returns the message about cache misses; `None` if they are too few.
pub(crate) fn missed(misses: &Misses) -> Option<String> {
    if misses.tokens() < WORTH_A_WORD {
        return None;
    }
    let agents = u64::try_from(misses.agents.len())
        .unwrap_or(u64::MAX)
        .saturating_add(misses.others);
    let who = match (misses.agents.first(), agents) {
        (Some(most), 2..) => format!("{agents} agents, most of them by {}", most.path),
        (Some(only), _) => only.path.clone(),
        (None, _) => "sub-agents".into(),
    };
    let (tokens, why) = (grouped(misses.tokens()), in_words(&misses.missed));
    Some(format!(
        "{tokens} tokens were no longer in the prompt cache and were paid for again, by {who}: \
         {why}"
    ))
}

/// Returns the end of a run with the sums of the runs before it.
pub(crate) fn added(before: Option<RunEnd>, end: RunEnd) -> RunEnd {
    let Some(mut before) = before else { return end };
    before.misses.append(end.misses);
    RunEnd {
        turns: before.turns.saturating_add(end.turns),
        spent: together(before.spent.into_iter().chain(end.spent)),
        below: together(before.below.into_iter().chain(end.below)),
        misses: before.misses,
        duration_ms: before.duration_ms.saturating_add(end.duration_ms),
        api_ms: before.api_ms.saturating_add(end.api_ms),
        denials: [before.denials, end.denials].concat(),
        ..end
    }
}

/// Returns all tokens of the main agent in a run.
pub(crate) fn main_usage(end: &RunEnd) -> Usage {
    end.spent
        .iter()
        .fold(Usage::default(), |sum, spent| sum + spent.usage)
}

/// Returns the cost of a run including sub-agents; `None` if a price is unknown.
pub(crate) fn cost(end: &RunEnd) -> Option<Cost> {
    end.spent
        .iter()
        .chain(&end.below)
        .map(|spent| spent.cost)
        .sum()
}

fn words(outcome: &Outcome) -> (&'static str, &'static str) {
    const ERROR: &str = "error_during_execution";
    match outcome {
        Outcome::Completed => ("success", "completed"),
        Outcome::Partial(Limit::Turns) => ("error_max_turns", "max_turns"),
        Outcome::Partial(Limit::Budget) => ("error_max_budget_usd", "budget"),
        Outcome::Partial(Limit::Output) => (ERROR, "max_output"),
        Outcome::Partial(Limit::Context) => (ERROR, "context_full"),
        Outcome::Partial(Limit::Repetition) => (ERROR, "repetition"),
        Outcome::Partial(Limit::Tasks) => (ERROR, "open_tasks"),
        Outcome::Partial(Limit::Hook) => (ERROR, "hook"),
        Outcome::Refused => (ERROR, "refused"),
        Outcome::Interrupted => (ERROR, "interrupted"),
        Outcome::Paused(_) => (ERROR, "paused"),
        Outcome::Failed(fault) if fault.class == FaultClass::Answer => {
            ("error_max_structured_output_retries", "failed")
        }
        Outcome::Failed(_) => (ERROR, "failed"),
    }
}

fn model_usage(spent: &Spent) -> (String, Value) {
    let Usage {
        input,
        output,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        ..
    } = spent.usage;
    let figures = json!({
        "inputTokens": input, "outputTokens": output, "cacheReadInputTokens": cache_read,
        "cacheCreationInputTokens": cache_write_5m.saturating_add(cache_write_1h),
        "costUSD": spent.cost.map(Cost::usd),
    });
    (spent.model.clone(), figures)
}

#[cfg(test)]
mod tests {
    use posse_protocol::{AgentMisses, Fault, Missed};

    use super::*;
    use crate::headless::fixtures::{end, facts};

    // proves FC-07 (part: interrupted)
    #[test]
    fn only_what_was_completed_is_a_success() {
        let fault = Fault {
            class: FaultClass::Busy,
            status: Some(529),
            message: "overloaded".into(),
        };
        let check = |outcome: Outcome, subtype: &str, reason: &str, code: u8| {
            let told = result(&facts(), &end(outcome.clone()));
            assert_eq!(
                (&told["subtype"], &told["terminal_reason"]),
                (&subtype.into(), &reason.into())
            );
            assert_eq!(told["is_error"], Value::from(code != 0), "{told}");
            assert_eq!(told.get("result").is_some(), code == 0);
            assert_eq!(told.get("errors").is_some(), code != 0);
            assert_eq!(exit_code(&outcome), code);
        };
        let error = "error_during_execution";
        check(Outcome::Completed, "success", "completed", 0);
        check(
            Outcome::Partial(Limit::Turns),
            "error_max_turns",
            "max_turns",
            3,
        );
        check(
            Outcome::Partial(Limit::Budget),
            "error_max_budget_usd",
            "budget",
            3,
        );
        check(Outcome::Partial(Limit::Output), error, "max_output", 3);
        check(Outcome::Partial(Limit::Context), error, "context_full", 3);
        check(Outcome::Refused, error, "refused", 1);
        check(Outcome::Interrupted, error, "interrupted", 130);
        check(Outcome::Paused(fault.clone()), error, "paused", 3);
        check(Outcome::Failed(fault), error, "failed", 1);
    }

    #[test]
    fn a_price_that_is_not_known_makes_the_total_unknown() {
        let mut end = end(Outcome::Completed);
        let told = result(&facts(), &end);
        assert_eq!(told["total_cost_usd"], json!(0.5));
        assert_eq!(told["usage"]["cache_creation_input_tokens"], json!(7));
        assert_eq!(told["modelUsage"]["m"]["costUSD"], json!(0.5));
        assert_eq!(
            told["permission_denials"][0]["tool_input"],
            json!({"command": "rm"})
        );
        end.spent.push(Spent {
            model: "odd".into(),
            usage: Usage::default(),
            cost: None,
        });
        assert_eq!(result(&facts(), &end)["total_cost_usd"], Value::Null);
        end.spent.clear();
        assert_eq!(result(&facts(), &end)["total_cost_usd"], json!(0.0));
    }

    fn line(agent: u128, path: &str, missed: Vec<Missed>) -> AgentMisses {
        let usage = Usage {
            cache_read: 1,
            cache_write_1h: 2,
            ..Usage::default()
        };
        AgentMisses {
            agent: uuid::Uuid::from_u128(agent).into(),
            path: path.into(),
            usage,
            missed,
        }
    }

    fn miss(tokens: u64, why: &str) -> Missed {
        Missed {
            tokens,
            why: why.into(),
        }
    }

    // proves FK-08 (part: per agent)
    #[test]
    fn misses_are_told_for_the_tree_and_for_those_that_missed_most() {
        let below = Usage {
            cache_read: 100,
            cache_write_5m: 10,
            cache_write_1h: 1,
            ..Usage::default()
        };
        let misses = Misses {
            missed: vec![miss(30, "expired"), miss(12, "tools_changed")],
            agents: vec![line(1, "/main", vec![miss(30, "expired")])],
            others: 2,
        };
        let spent = Spent {
            model: "m".into(),
            usage: below,
            cost: None,
        };
        let end = RunEnd {
            below: vec![spent],
            misses,
            ..end(Outcome::Completed)
        };
        assert_eq!(
            result(&facts(), &end)["cache"],
            json!({
                "read_tokens": 120, "written_5m_tokens": 13, "written_1h_tokens": 5, "missed_tokens": 42,
                "missed_why": {"expired": 30, "tools_changed": 12},
                "agents": [{
                    "agent_id": "00000000-0000-0000-0000-000000000001", "path": "/main", "read_tokens": 1,
                    "written_5m_tokens": 0, "written_1h_tokens": 2, "missed_tokens": 30,
                    "missed_why": {"expired": 30},
                }],
                "other_agents": 2,
            })
        );
        assert_eq!(
            result(&facts(), &RunEnd::of(Outcome::Completed))["cache"]["missed_tokens"],
            json!(0)
        );
        let twice = added(Some(end.clone()), end);
        assert_eq!(
            (
                twice.misses.tokens(),
                twice.misses.agents[0].tokens(),
                twice.misses.others
            ),
            (84, 60, 4)
        );
    }

    #[test]
    fn only_large_misses_are_worth_a_word() {
        let one = |tokens| {
            let missed = vec![miss(tokens, "expired")];
            Misses {
                missed: missed.clone(),
                agents: vec![line(1, "/main", missed)],
                others: 0,
            }
        };
        assert_eq!(missed(&Misses::default()), None);
        assert_eq!(missed(&one(19_999)), None);
        assert_eq!(
            missed(&one(45_000)).as_deref(),
            Some(
                "45,000 tokens were no longer in the prompt cache and were paid for again, by \
                 /main: they expired unused"
            )
        );
        let mut many = one(20_000);
        many.append(Misses {
            missed: vec![miss(5, "odd")],
            others: 3,
            ..Misses::default()
        });
        let told = missed(&many).unwrap();
        assert!(
            told.contains(" by 4 agents, most of them by /main: "),
            "{told}"
        );
    }

    fn spent(model: &str, pico: Option<u64>) -> Spent {
        let usage = Usage {
            input: 1,
            output: 2,
            ..Usage::default()
        };
        Spent {
            model: model.into(),
            usage,
            cost: pico.map(Cost::from_pico_usd),
        }
    }

    #[test]
    fn sub_agents_count_for_cost_and_models_and_not_for_usage() {
        let end = RunEnd {
            below: vec![
                spent("m", Some(250_000_000_000)),
                spent("small", Some(1_000_000_000_000)),
            ],
            ..end(Outcome::Completed)
        };
        let told = result(&facts(), &end);
        assert_eq!(
            (&told["total_cost_usd"], &told["usage"]["output_tokens"]),
            (&json!(1.75), &json!(5))
        );
        assert_eq!(told["modelUsage"]["m"]["costUSD"], json!(0.75));
        assert_eq!(told["modelUsage"]["m"]["outputTokens"], json!(7));
        assert_eq!(told["modelUsage"]["small"]["inputTokens"], json!(1));
    }

    #[test]
    fn runs_add_up_and_the_last_one_has_the_word() {
        let first = RunEnd {
            below: vec![spent("small", None)],
            live: 1,
            ..end(Outcome::Completed)
        };
        let last = RunEnd {
            text: "more".into(),
            ..end(Outcome::Partial(Limit::Turns))
        };
        let all = added(Some(added(None, first.clone())), last.clone());
        assert_eq!(
            (&all.outcome, all.text.as_str(), all.live),
            (&last.outcome, "more", 0)
        );
        assert_eq!(
            (all.turns, all.duration_ms, all.api_ms, all.denials.len()),
            (4, 3000, 2400, 2)
        );
        assert_eq!(
            all.spent[0].cost,
            Some(Cost::from_pico_usd(1_000_000_000_000))
        );
        assert_eq!((all.spent.len(), &all.below), (1, &first.below));
        assert_eq!(cost(&all), None, "a price is not known");
    }
}
