//! Implements what running agents need from the code that creates agents.

use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::tool::ToolError;
use posse_protocol::{AgentId, Aside, Spent};
use tokio_util::sync::CancellationToken;

use crate::agent::lifecycle::{Delegation, Lifecycle, SkillOutcome};
use crate::live::session::Session;
use crate::prompt::Reader;
use crate::session::factory::Factory;
use crate::session::side_query::{self, SideAnswer, SideQueryOptions};
use crate::session::team::declared;
use crate::session::{dispatch, skill};

impl Lifecycle for Factory {
    fn mail_for(self: Arc<Self>, agent: AgentId) {
        dispatch::mail_for(&self, agent);
    }

    fn start_declared_members(self: Arc<Self>, session: &Arc<Session>) {
        declared::start_declared_members(&self, session);
    }

    fn ask(
        self: Arc<Self>,
        agent: AgentId,
        question: String,
        max_tokens: u32,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Aside> {
        Box::pin(async move {
            let options = SideQueryOptions {
                max_tokens,
                cancel,
                hear: None,
            };
            let asked = side_query::ask(&self, agent, &question, options).await;
            let (answer, error, charges) = match asked {
                Ok(SideAnswer {
                    answer: Ok(answer),
                    charges,
                    ..
                }) => (Some(answer), None, charges),
                Ok(SideAnswer {
                    answer: Err(error),
                    charges,
                    ..
                }) => (None, Some(error.to_string()), charges),
                Err(error) => (None, Some(error.to_string()), Vec::new()),
            };
            let spent = charges.into_iter().map(|charge| Spent {
                model: charge.model,
                usage: charge.usage,
                cost: charge.cost,
            });
            Aside {
                question,
                answer,
                error,
                spent: spent.collect(),
            }
        })
    }

    fn follow_skill(
        self: Arc<Self>,
        by: AgentId,
        reader: Reader,
        delegation: Delegation,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<SkillOutcome, ToolError>> {
        Box::pin(async move {
            skill::delegate(&self, (by, reader), delegation, &cancel)
                .await
                .map_err(|error| ToolError::Tell(error.to_string()))
        })
    }
}
