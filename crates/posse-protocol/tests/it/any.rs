//! Any command and any event: a strategy for each variant of the inner words.

use std::path::PathBuf;

use std::fmt::Debug;
use std::sync::Arc;

use posse_protocol::wire::ClientWatch;
use posse_protocol::*;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use uuid::Uuid;

/// Checks 64 values of each strategy.
pub(crate) fn each<T: Debug>(arms: Vec<BoxedStrategy<T>>, check: impl Fn(T)) {
    for arm in arms {
        run(TestRunner::new(cases(64)), &arm, &check);
    }
}

/// Checks 160 values of each strategy, always the same ones.
pub(crate) fn the_same_of_each<T: Debug>(arms: Vec<BoxedStrategy<T>>, check: impl Fn(T)) {
    for arm in arms {
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        run(TestRunner::new_with_rng(cases(160), rng), &arm, &check);
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn run<T: Debug>(mut runner: TestRunner, arm: &BoxedStrategy<T>, check: impl Fn(T)) {
    let checked = runner.run(arm, |value| {
        check(value);
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}

fn text() -> impl Strategy<Value = String> {
    "(?s).{0,12}"
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn agent() -> impl Strategy<Value = AgentId> {
    id().prop_map(AgentId::from)
}

fn question_id() -> impl Strategy<Value = QuestionId> {
    id().prop_map(QuestionId::from)
}

fn name() -> impl Strategy<Value = Name> {
    "[a-z0-9][a-z0-9-]{0,63}".prop_map(|name| name.parse().unwrap())
}

fn mode() -> impl Strategy<Value = PermissionMode> {
    select(PermissionMode::ALL.to_vec())
}

fn memory_scope() -> impl Strategy<Value = MemoryScope> {
    use MemoryScope::{Local, Project, User};
    select(vec![Project, Local, User])
}

/// JSON as somebody wrote it, on one line.
fn json() -> impl Strategy<Value = RawJson> {
    let odd = [
        r#"{"b":1.50,"a" : [ 1,2 ]}"#,
        r#"{"a":1,"a":2}"#,
        "12345678901234567890123",
        "1e400",
        "-0.0",
        "null",
        r#""\u00e9\n""#,
        "{}",
    ];
    let written = text().prop_map(|text| serde_json::json!({ "command": text }).to_string());
    prop_oneof![select(odd.to_vec()).prop_map(str::to_owned), written]
        .prop_map(|text| RawJson::parse(&text).unwrap())
}

/// An input of a tool; a client's `null` is none.
fn input() -> impl Strategy<Value = RawJson> {
    json().prop_filter("an input", |json| json.get() != "null")
}

fn words() -> impl Strategy<Value = Vec<ContentBlock>> {
    vec(part().prop_map(ContentBlock::from), 0..3)
}

fn part() -> impl Strategy<Value = ToolContent> {
    prop_oneof![
        text().prop_map(ToolContent::text),
        (text(), text()).prop_map(|(media_type, data)| ToolContent::Image { media_type, data }),
        vec(tool_spec(), 0..3).prop_map(|tools| ToolContent::Tools { tools }),
    ]
}

fn tool_spec() -> impl Strategy<Value = ToolSpec> {
    (text(), text(), input()).prop_map(|(name, description, input_schema)| ToolSpec {
        name,
        description,
        input_schema,
    })
}

fn refusal() -> impl Strategy<Value = SandboxRefusal> {
    let paths = || vec(text().prop_map(PathBuf::from), 0..3);
    (paths(), paths(), any::<bool>()).prop_map(|(write, read, network)| SandboxRefusal {
        write,
        read,
        network,
    })
}

fn suggestion() -> impl Strategy<Value = Suggestion> {
    vec(text(), 0..3).prop_map(|rules| Suggestion { rules })
}

fn accepted() -> impl Strategy<Value = AcceptedRules> {
    let scopes = [
        RuleScope::Session,
        RuleScope::Directory,
        RuleScope::Everywhere,
    ];
    (vec(text(), 0..3), select(scopes.to_vec()))
        .prop_map(|(rules, scope)| AcceptedRules { rules, scope })
}

fn display() -> impl Strategy<Value = Display> {
    let changes = [LineChange::Kept, LineChange::Removed, LineChange::Added];
    let line =
        (select(changes.to_vec()), text(), any::<bool>()).prop_map(|(change, text, is_open)| {
            DiffLine {
                change,
                text,
                is_open,
            }
        });
    let hunk =
        (any::<u64>(), any::<u64>(), vec(line, 0..3)).prop_map(|(old_start, new_start, lines)| {
            Hunk {
                old_start,
                new_start,
                lines,
            }
        });
    let counts = (any::<u64>(), any::<u64>(), any::<u64>());
    let diff = (text(), any::<bool>(), counts, vec(hunk, 0..3)).prop_map(
        |(path, is_new, (added, removed, left_out), hunks)| {
            Display::Diff(FileDiff {
                path,
                is_new,
                added,
                removed,
                hunks,
                left_out,
            })
        },
    );
    prop_oneof![diff, text().prop_map(|text| Display::Text { text })]
}

fn prompt_change() -> impl Strategy<Value = PromptChange> {
    prop_oneof![
        words().prop_map(PromptChange::Edit),
        Just(PromptChange::TakeBack),
        any::<bool>().prop_map(PromptChange::Join),
    ]
}

/// A strategy for each command but the one that passes another on.
fn direct() -> Vec<BoxedStrategy<Command>> {
    let rules = || vec(text(), 0..3);
    let answer = prop_oneof![
        (of(input()), of(accepted())).prop_map(|(input, always)| Answer::Allow { input, always }),
        (of(text()), of(mode())).prop_map(|(plan, mode)| Answer::Approve { plan, mode }),
        (text(), any::<bool>())
            .prop_map(|(message, interrupt)| Answer::Deny { message, interrupt }),
    ];
    vec![
        words().prop_map(Command::Prompt).boxed(),
        (text(), text(), words())
            .prop_map(|(name, arguments, words)| Command::Skill {
                name,
                arguments,
                words,
            })
            .boxed(),
        Just(Command::Continue).boxed(),
        Just(Command::Interrupt).boxed(),
        text().prop_map(Command::Shell).boxed(),
        text()
            .prop_map(|question| Command::Aside { question })
            .boxed(),
        (agent(), question_id(), answer)
            .prop_map(|(agent, question, answer)| Command::Answer {
                agent,
                question,
                answer,
            })
            .boxed(),
        (any::<u64>(), prompt_change())
            .prop_map(|(prompt, change)| Command::ChangePrompt { prompt, change })
            .boxed(),
        mode().prop_map(Command::SetMode).boxed(),
        (text(), memory_scope())
            .prop_map(|(text, scope)| Command::Note { text, scope })
            .boxed(),
        (list_kind(), text())
            .prop_map(|(what, part)| Command::List { what, part })
            .boxed(),
        (of(text()), of(text()))
            .prop_map(|(model, effort)| Command::SetModel { model, effort })
            .boxed(),
        (rules(), rules(), rules())
            .prop_map(|(allow, ask, deny)| Command::AddRules { allow, ask, deny })
            .boxed(),
        of(text())
            .prop_map(|keep| Command::Compact { keep })
            .boxed(),
        id().prop_map(Command::StopRun).boxed(),
        Just(Command::StopRuns).boxed(),
        Just(Command::Detach).boxed(),
        (name(), plan().prop_map(Box::new), words())
            .prop_map(|(name, plan, words)| Command::Team { name, plan, words })
            .boxed(),
    ]
}

/// A strategy for each command.
pub(crate) fn commands() -> Vec<BoxedStrategy<Command>> {
    let told = proptest::strategy::Union::new(direct()).prop_map(Box::new);
    let passed_on = (agent(), told).prop_map(|(agent, command)| Command::To { agent, command });
    let mut arms = direct();
    arms.push(passed_on.boxed());
    arms
}

fn plan() -> impl Strategy<Value = TeamPlan> {
    let looks = (of(text()), text(), of(text()), of(text()), of(mode()));
    let terms = (
        any::<bool>(),
        of(cost()),
        any::<u32>(),
        of(vec(text(), 0..3)),
    );
    let role = (looks, terms).prop_map(
        |((agent, prompt, model, effort, mode), (worktree, budget, count, takes))| TeamRole {
            agent,
            prompt,
            model,
            effort,
            mode,
            worktree,
            budget,
            count,
            takes,
        },
    );
    let task = (
        text(),
        text(),
        of(text()),
        vec(any::<u64>(), 0..3),
        of(text()),
    )
        .prop_map(
            |(subject, description, role, blocked_by, check)| PlannedTask {
                subject,
                description,
                role,
                blocked_by,
                check,
            },
        );
    (text(), btree_map(name(), role, 0..3), vec(task, 0..3)).prop_map(
        |(description, roles, tasks)| TeamPlan {
            description,
            roles,
            tasks,
        },
    )
}

/// A strategy for each event.
pub(crate) fn events() -> Vec<BoxedStrategy<EventKind>> {
    vec![
        Just(EventKind::Started).boxed(),
        entry()
            .prop_map(Box::new)
            .prop_map(EventKind::Entry)
            .boxed(),
        delta().prop_map(EventKind::Delta).boxed(),
        (any::<u32>(), any::<u64>(), fault())
            .prop_map(|(attempt, wait_ms, fault)| {
                EventKind::Retry(Retry {
                    attempt,
                    wait_ms,
                    fault,
                })
            })
            .boxed(),
        (
            (
                question_id(),
                select(QuestionKind::ALL.to_vec()),
                of(any::<i64>()),
            ),
            (text(), text(), json(), text(), of(text())),
            (vec(suggestion(), 0..3), of(display()), of(refusal())),
        )
            .prop_map(
                |((id, kind, until_ms), call, (suggestions, shown, refused))| {
                    let (call, tool, input, why, from) = call;
                    EventKind::ApprovalRequested(Box::new(Question {
                        id,
                        kind,
                        call,
                        tool,
                        input,
                        why,
                        from,
                        until_ms,
                        suggestions,
                        shown,
                        refused,
                    }))
                },
            )
            .boxed(),
        question_id()
            .prop_map(|question| EventKind::ApprovalWithdrawn { question })
            .boxed(),
        (text(), text(), text())
            .prop_map(|(call, tool, title)| EventKind::CallStarted { call, tool, title })
            .boxed(),
        (text(), any::<bool>())
            .prop_map(|(call, is_error)| EventKind::CallDone { call, is_error })
            .boxed(),
        denial().prop_map(EventKind::Denied).boxed(),
        mode().prop_map(EventKind::Mode).boxed(),
        (text(), text())
            .prop_map(|(file, line)| EventKind::Noted { file, line })
            .boxed(),
        (
            list_kind(),
            text(),
            vec((text(), text()), 0..3),
            any::<u64>(),
        )
            .prop_map(|(what, part, names, left_out)| {
                let name = |(name, about)| ListedName { name, about };
                EventKind::Listed(Box::new(Listing {
                    what,
                    part,
                    names: names.into_iter().map(name).collect(),
                    left_out,
                }))
            })
            .boxed(),
        (text(), of(text()), any::<u64>(), of(cost()))
            .prop_map(|(model, effort, reread_tokens, cost)| {
                EventKind::Model(Box::new(ModelUpdate {
                    model,
                    effort,
                    reread_tokens,
                    cost,
                }))
            })
            .boxed(),
        (any::<bool>(), any::<u64>())
            .prop_map(|(auto, tokens)| EventKind::Compacting { auto, tokens })
            .boxed(),
        (run_facts(), run_change())
            .prop_map(|(run, what)| EventKind::Run(Box::new(RunUpdate { run, what })))
            .boxed(),
        (name(), name(), text(), member_change())
            .prop_map(|(team, name, color, what)| {
                EventKind::Member(Box::new(MemberUpdate {
                    team,
                    name,
                    color,
                    what,
                }))
            })
            .boxed(),
        (text(), of(text()), of(text()), all_spent())
            .prop_map(|(question, answer, error, spent)| {
                EventKind::Aside(Box::new(Aside {
                    question,
                    answer,
                    error,
                    spent,
                }))
            })
            .boxed(),
        hook().prop_map(Box::new).prop_map(EventKind::Hook).boxed(),
        text().prop_map(EventKind::Warning).boxed(),
        ended(run_end()),
        Just(EventKind::AllIdle).boxed(),
        activity().prop_map(EventKind::State).boxed(),
        spending()
            .prop_map(Box::new)
            .prop_map(EventKind::Spending)
            .boxed(),
        vec(queued(), 0..3).prop_map(EventKind::Queue).boxed(),
        task_update()
            .prop_map(Box::new)
            .prop_map(EventKind::Task)
            .boxed(),
        (
            mail_id(),
            any::<u64>(),
            text(),
            select(MailKind::ALL.to_vec()),
            text(),
            text(),
        )
            .prop_map(|(id, number, from, kind, summary, body)| {
                EventKind::Mail(Box::new(MailUpdate {
                    id,
                    number,
                    from,
                    kind,
                    summary,
                    body,
                }))
            })
            .boxed(),
        (
            mail_id(),
            select(RequestKind::ALL.to_vec()),
            text(),
            text(),
            any::<bool>(),
        )
            .prop_map(|(id, kind, from, text, is_open)| {
                EventKind::Request(Box::new(RequestUpdate {
                    id,
                    kind,
                    from,
                    text,
                    is_open,
                }))
            })
            .boxed(),
        (text(), text(), any::<u64>())
            .prop_map(|(call, text, skipped)| EventKind::Output {
                call,
                text,
                skipped,
            })
            .boxed(),
    ]
}

fn mail_id() -> impl Strategy<Value = MailId> {
    any::<u128>().prop_map(|id| Uuid::from_u128(id).into())
}

fn task_update() -> impl Strategy<Value = TaskUpdate> {
    let status = select(TaskStatus::ALL.to_vec());
    let number = || any::<u64>().prop_map(TaskId);
    let about = (of(name()), number(), text(), status);
    (about, of(text()), vec(number(), 0..3)).prop_map(
        |((team, id, subject, status), owner, waits_for)| TaskUpdate {
            team,
            id,
            subject,
            status,
            owner,
            waits_for,
        },
    )
}

fn queued() -> impl Strategy<Value = QueuedPrompt> {
    (any::<u64>(), text(), any::<u32>(), any::<bool>()).prop_map(|(id, text, images, joins)| {
        QueuedPrompt {
            id,
            text,
            images,
            joins,
        }
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let kind = select(vec![
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Compaction,
        EntryKind::Model,
    ]);
    let role = select(vec![Role::User, Role::Assistant]);
    let message = (role, vec(block(), 0..4)).prop_map(|(role, content)| Message { role, content });
    let reply = (text(), text(), of(stop()), usage(), of(missed())).prop_map(
        |(id, model, stop, usage, missed)| ReplyFacts {
            id,
            model,
            stop,
            usage,
            missed,
        },
    );
    (any::<u64>(), kind, message, of(reply)).prop_map(|(seq, kind, message, reply)| Entry {
        seq,
        kind,
        message: Arc::new(message),
        reply,
    })
}

fn block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        part().prop_map(ContentBlock::from),
        (text(), text()).prop_map(|(thinking, signature)| ContentBlock::Thinking {
            thinking,
            signature
        }),
        text().prop_map(|data| ContentBlock::RedactedThinking { data }),
        (text(), text(), json()).prop_map(|(id, name, input)| ContentBlock::ToolUse {
            id,
            name,
            input
        }),
        (text(), vec(part(), 0..3), any::<bool>()).prop_map(|(tool_use_id, content, is_error)| {
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            }
        }),
        json().prop_map(|block| ContentBlock::Opaque { block }),
    ]
}

fn delta() -> impl Strategy<Value = Delta> {
    prop_oneof![
        text().prop_map(|model| Delta::Started { model }),
        text().prop_map(Delta::Text),
        text().prop_map(Delta::Thinking),
        (text(), text()).prop_map(|(id, name)| Delta::ToolUse { id, name }),
        text().prop_map(Delta::ToolInput),
        Just(Delta::BlockDone),
    ]
}

fn stop() -> impl Strategy<Value = StopReason> {
    select(vec![
        StopReason::EndTurn,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::ToolUse,
        StopReason::PauseTurn,
        StopReason::Refusal,
        StopReason::ContextFull,
        StopReason::Other("a new one".into()),
    ])
}

fn fault() -> impl Strategy<Value = Fault> {
    let class = select(vec![
        FaultClass::Unreachable,
        FaultClass::Connection,
        FaultClass::Authentication,
        FaultClass::Billing,
        FaultClass::Permission,
        FaultClass::NotFound,
        FaultClass::InvalidRequest,
        FaultClass::TooLarge,
        FaultClass::Busy,
        FaultClass::Provider,
        FaultClass::Store,
        FaultClass::Fenced,
        FaultClass::Budget,
        FaultClass::Tool,
        FaultClass::Repetition,
        FaultClass::Hook,
        FaultClass::Answer,
        FaultClass::Internal,
    ]);
    (class, of(any::<u16>()), text()).prop_map(|(class, status, message)| Fault {
        class,
        status,
        message,
    })
}

fn denial() -> impl Strategy<Value = Denial> {
    (text(), text(), json(), text()).prop_map(|(tool, call, input, why)| Denial {
        tool,
        call,
        input,
        why,
    })
}

fn activity() -> impl Strategy<Value = Activity> {
    let reasons = [
        WaitReason::Place,
        WaitReason::Budget,
        WaitReason::Rate,
        WaitReason::Children,
        WaitReason::Person,
    ];
    let others = [Activity::Idle, Activity::Working, Activity::Gone];
    let waiting = reasons.map(Activity::Waiting);
    select([&others[..], &waiting[..]].concat())
}

fn all_spent() -> impl Strategy<Value = Vec<Spent>> {
    let one = (text(), usage(), of(cost()));
    vec(
        one.prop_map(|(model, usage, cost)| Spent { model, usage, cost }),
        0..3,
    )
}

fn spending() -> impl Strategy<Value = SpendingUpdate> {
    (
        all_spent(),
        all_spent(),
        of(cost()),
        any::<u64>(),
        of(any::<u64>()),
    )
        .prop_map(
            |(own, subtree, left, context_tokens, context_window)| SpendingUpdate {
                own,
                subtree,
                left,
                context_tokens,
                context_window,
            },
        )
}

/// Every way to begin or end to watch.
pub(crate) fn watches() -> Vec<ClientWatch> {
    let agent = AgentId::from(Uuid::from_u128(7));
    let targets = [WatchTarget::Agent(agent), WatchTarget::Session(agent)];
    let details = [None, Some(Detail::News), Some(Detail::All)];
    let each = targets.into_iter().flat_map(|target| {
        let watch = move |detail: Option<Detail>| ClientWatch {
            id: detail.map(|_| "1".to_owned()),
            target,
            detail,
        };
        details.map(watch)
    });
    each.collect()
}

fn usage() -> impl Strategy<Value = Usage> {
    any::<[u64; 6]>().prop_map(|counts| Usage {
        input: counts[0],
        cache_read: counts[1],
        cache_write_5m: counts[2],
        cache_write_1h: counts[3],
        output: counts[4],
        thinking: counts[5],
    })
}

/// Up to a thousand dollars, to the pico-dollar.
fn cost() -> impl Strategy<Value = Cost> {
    (0..=1_000_000_000_000_000_u64).prop_map(Cost::from_pico_usd)
}

fn missed() -> impl Strategy<Value = Missed> {
    (any::<u64>(), text()).prop_map(|(tokens, why)| Missed { tokens, why })
}

fn run_usage() -> impl Strategy<Value = RunUsage> {
    any::<(u64, u32, u64)>().prop_map(|(total_tokens, tool_uses, duration_ms)| RunUsage {
        total_tokens,
        tool_uses,
        duration_ms,
    })
}

fn run_kind() -> impl Strategy<Value = RunKind> {
    select(vec![RunKind::Agent, RunKind::Shell])
}

fn run_facts() -> impl Strategy<Value = RunFacts> {
    let looks = (id(), run_kind(), text(), of(name()), text());
    let origin = (text(), agent(), any::<u32>(), text(), of(place()));
    (looks, origin).prop_map(|((task, kind, agent_type, name, description), origin)| {
        let (call, starter, depth, output_file, place) = origin;
        RunFacts {
            task,
            kind,
            agent_type,
            name,
            description,
            call,
            starter,
            depth,
            output_file: output_file.into(),
            place: place.map(Box::new),
        }
    })
}

fn place() -> impl Strategy<Value = AgentPlace> {
    (text(), text(), mode(), text(), of(text())).prop_map(|(path, model, mode, cwd, branch)| {
        AgentPlace {
            path,
            model,
            mode,
            cwd: cwd.into(),
            branch,
        }
    })
}

fn run_change() -> impl Strategy<Value = RunChange> {
    prop_oneof![
        (text(), any::<bool>())
            .prop_map(|(prompt, background)| RunChange::Started { prompt, background }),
        (run_usage(), of(text()), text()).prop_map(|(usage, last_tool, summary)| {
            RunChange::Progress {
                usage,
                last_tool,
                summary,
            }
        }),
        Just(RunChange::Detached),
        notification().prop_map(Box::new).prop_map(RunChange::Ended),
    ]
}

fn notification() -> impl Strategy<Value = Notification> {
    let worktree =
        (text(), text(), text(), of(text())).prop_map(|(path, branch, base, kept)| WorktreeEnd {
            path: path.into(),
            branch,
            base,
            kept,
        });
    let looks = (id(), id(), text(), run_kind(), text(), text());
    let end = (select(RunStatus::ALL.to_vec()), text(), text(), of(text()));
    let rest = (run_usage(), text(), of(json()), of(worktree));
    (looks, end, rest).prop_map(
        |(
            (task, run, call, kind, description, output_file),
            (status, summary, result, error),
            (usage, model, value, worktree),
        )| Notification {
            task,
            run,
            call,
            kind,
            description,
            output_file: output_file.into(),
            status,
            summary,
            result,
            error,
            usage,
            model,
            value,
            worktree,
        },
    )
}

fn member_change() -> impl Strategy<Value = MemberChange> {
    let reason = select(vec![
        IdleReason::Available,
        IdleReason::Interrupted,
        IdleReason::Failed,
    ]);
    let status = select(TaskStatus::ALL.to_vec());
    let task = (any::<u64>(), text(), status).prop_map(|(id, subject, status)| TaskReport {
        id: TaskId(id),
        subject,
        status,
    });
    let report = (
        name(),
        reason,
        of(text()),
        text(),
        vec(task, 0..3),
        of(text()),
    )
        .prop_map(|(team, reason, error, answer, tasks, branch)| IdleReport {
            team,
            reason,
            error,
            answer,
            tasks,
            branch,
        });
    prop_oneof![
        (text(), text(), text()).prop_map(|(agent_type, model, backend)| MemberChange::Joined {
            agent_type,
            model,
            backend
        }),
        Just(MemberChange::Running),
        report.prop_map(Box::new).prop_map(MemberChange::Idle),
        Just(MemberChange::TakenOver),
        Just(MemberChange::Left),
    ]
}

fn run_end() -> impl Strategy<Value = RunEnd> {
    let limit = select(vec![
        Limit::Turns,
        Limit::Budget,
        Limit::Output,
        Limit::Context,
        Limit::Repetition,
        Limit::Tasks,
        Limit::Hook,
    ]);
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        limit.prop_map(Outcome::Partial),
        Just(Outcome::Refused),
        Just(Outcome::Interrupted),
        fault().prop_map(Outcome::Paused),
        fault().prop_map(Outcome::Failed),
    ];
    let said = (outcome, text(), of(json()), of(stop()), any::<u32>());
    let took = (
        all_spent(),
        all_spent(),
        misses(),
        any::<usize>(),
        any::<[u64; 2]>(),
    );
    (said, took, vec(denial(), 0..3)).prop_map(
        |((outcome, text, value, stop, turns), (spent, below, misses, live, times), denials)| {
            RunEnd {
                outcome,
                text,
                value,
                stop,
                turns,
                spent,
                below,
                misses,
                live,
                duration_ms: times[0],
                api_ms: times[1],
                denials,
            }
        },
    )
}

fn misses() -> impl Strategy<Value = Misses> {
    let line =
        (agent(), text(), usage(), vec(missed(), 0..3)).prop_map(|(agent, path, usage, missed)| {
            AgentMisses {
                agent,
                path,
                usage,
                missed,
            }
        });
    (vec(missed(), 0..3), vec(line, 0..3), any::<u64>()).prop_map(|(missed, agents, others)| {
        Misses {
            missed,
            agents,
            others,
        }
    })
}

fn list_kind() -> impl Strategy<Value = ListKind> {
    select(vec![ListKind::Files, ListKind::Agents, ListKind::Commands])
}

/// Any hook that runs or has run.
fn ended(end: impl Strategy<Value = RunEnd> + 'static) -> BoxedStrategy<EventKind> {
    end.prop_map(Box::new).prop_map(EventKind::Ended).boxed()
}

fn hook() -> impl Strategy<Value = HookUpdate> {
    let end = (text(), text(), of(any::<i32>()), of(text()));
    let end = end.prop_map(|(output, errors, code, failure)| HookEnd {
        output,
        errors,
        code,
        failure,
    });
    let all = (any::<u128>(), text(), text(), text(), of(text()), of(end));
    all.prop_map(|(id, event, about, title, call, end)| HookUpdate {
        id: Uuid::from_u128(id),
        event,
        about,
        title,
        call,
        end,
    })
}
