//! Tokens and money, on the wire. The keys are those of all JSON that posse prints.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AgentId, AgentMisses, Cost, Missed, Misses, Spent, Usage};

/// Tokens that model calls used.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub(super) struct WireUsage {
    /// Input tokens that were neither read from nor written to the cache.
    input_tokens: u64,
    /// Input tokens read from the cache.
    cache_read_input_tokens: u64,
    /// Input tokens written to the cache: the sum of `cache_creation`.
    cache_creation_input_tokens: u64,
    /// The same by how long the cache keeps them.
    cache_creation: WireCacheCreation,
    /// Output tokens, including thinking.
    output_tokens: u64,
    /// Tokens of the output that were thinking.
    thinking_tokens: u64,
}

/// Input tokens written to the cache.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CacheCreation")]
struct WireCacheCreation {
    /// Kept for five minutes.
    ephemeral_5m_input_tokens: u64,
    /// Kept for an hour.
    ephemeral_1h_input_tokens: u64,
}

impl From<Usage> for WireUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            cache_read_input_tokens: usage.cache_read,
            cache_creation_input_tokens: usage.cache_write_5m.saturating_add(usage.cache_write_1h),
            cache_creation: WireCacheCreation {
                ephemeral_5m_input_tokens: usage.cache_write_5m,
                ephemeral_1h_input_tokens: usage.cache_write_1h,
            },
            output_tokens: usage.output,
            thinking_tokens: usage.thinking,
        }
    }
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Self {
            input: usage.input_tokens,
            cache_read: usage.cache_read_input_tokens,
            cache_write_5m: usage.cache_creation.ephemeral_5m_input_tokens,
            cache_write_1h: usage.cache_creation.ephemeral_1h_input_tokens,
            output: usage.output_tokens,
            thinking: usage.thinking_tokens,
        }
    }
}

/// Tokens that were cached once and had to be read again.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Missed")]
pub(super) struct WireMissed {
    /// The number of tokens.
    tokens: u64,
    /// The reason: `expired`, the provider's word (`tools_changed`, …), or `unknown`.
    why: String,
}

both_ways!(Missed, WireMissed { tokens, why });

/// What an agent missed in the cache.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentMisses")]
pub(super) struct WireAgentMisses {
    /// The agent.
    agent: AgentId,
    /// Its path in the tree of agents.
    path: String,
    /// Tokens it used.
    usage: WireUsage,
    /// Tokens it missed, by reason.
    missed: Vec<WireMissed>,
}

both_ways!(AgentMisses, WireAgentMisses { agent, path, usage } each { missed });

/// What agents missed in the cache.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Misses")]
pub(super) struct WireMisses {
    /// Tokens of all agents, by reason.
    missed: Vec<WireMissed>,
    /// The agents that missed most, at most 32.
    agents: Vec<WireAgentMisses>,
    /// The number of other agents that missed something.
    others: u64,
}

both_ways!(Misses, WireMisses { others } each { missed, agents });

/// What one model used and cost.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Spent")]
pub(super) struct WireSpent {
    /// The model.
    model: String,
    /// Tokens.
    usage: WireUsage,
    /// The cost; absent if the price of the model is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<WireCost>,
}

impl From<Spent> for WireSpent {
    fn from(spent: Spent) -> Self {
        Self {
            model: spent.model,
            usage: spent.usage.into(),
            cost_usd: spent.cost.map(WireCost),
        }
    }
}

impl From<WireSpent> for Spent {
    fn from(spent: WireSpent) -> Self {
        Self {
            model: spent.model,
            usage: spent.usage.into(),
            cost: spent.cost_usd.map(|cost| cost.0),
        }
    }
}

/// An amount of money: a number of dollars. Up to a thousand dollars no pico-dollar is lost.
#[derive(Debug)]
pub(super) struct WireCost(pub(super) Cost);

impl Serialize for WireCost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0.usd())
    }
}

impl<'de> Deserialize<'de> for WireCost {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let usd = f64::deserialize(from)?;
        if usd < 0.0 {
            return Err(serde::de::Error::custom("a cost below zero"));
        }
        Ok(Self(Cost::from_pico_usd((usd * 1e12).round() as u64)))
    }
}

impl JsonSchema for WireCost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "US dollars.", "type": "number", "minimum": 0 })
    }
}
