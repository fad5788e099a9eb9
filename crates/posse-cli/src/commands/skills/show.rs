//! `posse skills show`.

use std::path::Path;
use std::process::ExitCode;

use posse_runtime::definition::skill::Skill;
use serde_json::{Value, json};

use crate::definitions::DefinitionEntry;
use crate::definitions::skills::SkillSources;
use crate::output::{json_line, print, tame};
use crate::present::definitions;

/// Show a skill: its source, its permissions and its instructions.
#[derive(clap::Args)]
pub(super) struct ShowSkill {
    /// Its name, in upper or lower case
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ShowSkill {
    pub(super) fn run(self, sources: &SkillSources) -> anyhow::Result<ExitCode> {
        let loaded = sources.load();
        let name = self.name.trim_start_matches('/');
        let Some(known) = loaded.find(name) else {
            anyhow::bail!(definitions::unknown(&loaded, "skills", "skill", name))
        };
        let shadows = loaded.shadowed_by_name(name);
        let shown = if self.json {
            let mut object = object(known);
            let places: Vec<String> = shadows
                .iter()
                .map(|other| other.origin(Path::new("")))
                .collect();
            object["body"] = json!(known.definition.body.text);
            object["shadows"] = json!(places);
            json_line(&object)
        } else {
            readable(known, &shadows, sources.cwd())
        };
        print(shown.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns what a list shows of a skill.
pub(super) fn object(known: &DefinitionEntry<Skill>) -> Value {
    let it = &known.definition;
    let fork = it.fork.as_ref();
    json!({
        "name": it.name, "source": known.source.as_str(),
        "path": known.path.as_ref().map(|path| path.to_string_lossy()),
        "description": it.description, "when_to_use": it.when_to_use, "argument_hint": it.argument_hint,
        "arguments": it.arguments, "model_invocable": it.for_model, "user_invocable": it.for_user,
        "allowed_tools": it.allowed, "disallowed_tools": it.disallowed,
        "context": fork.map(|_| "fork"), "agent": fork.and_then(|fork| fork.agent.as_deref()),
        "model": fork.and_then(|fork| fork.model.as_deref()),
        "effort": fork.and_then(|fork| fork.effort).map(|effort| effort.as_str()),
        "background": fork.is_some_and(|fork| fork.background),
    })
}

/// Returns who may call it.
pub(super) fn callers(it: &Skill) -> &'static str {
    match (it.for_model, it.for_user) {
        (true, true) => "all",
        (true, false) => "model",
        (false, true) => "user",
        (false, false) => "agents",
    }
}

/// Returns the description for people.
fn readable(
    known: &DefinitionEntry<Skill>,
    shadows: &[&DefinitionEntry<Skill>],
    cwd: &Path,
) -> String {
    let it = &known.definition;
    let hint = it
        .argument_hint
        .as_deref()
        .map(|hint| format!(" {hint}"))
        .unwrap_or_default();
    let mut out = format!(
        "\x1b[1m/{}\x1b[0m{}\n{}\n\n",
        tame(&it.name),
        tame(&hint),
        tame(it.description.trim())
    );
    let mut line = |name: &str, value: &str| out.push_str(&format!("{name:<19} {}\n", tame(value)));
    line(
        "from",
        &format!("{}: {}", known.source.as_str(), known.origin(cwd)),
    );
    for other in shadows {
        line("shadows", &other.origin(cwd));
    }
    let list = |words: &[String]| (!words.is_empty()).then(|| words.join(", "));
    let fork = it.fork.as_ref();
    let fields = [
        ("for", Some(callers(it).to_owned())),
        ("when_to_use", it.when_to_use.clone()),
        ("arguments", list(&it.arguments)),
        ("allowed-tools", list(&it.allowed)),
        ("disallowed-tools", list(&it.disallowed)),
        ("context", fork.map(|_| "fork".to_owned())),
        ("agent", fork.and_then(|fork| fork.agent.clone())),
        ("model", fork.and_then(|fork| fork.model.clone())),
        (
            "effort",
            fork.and_then(|fork| fork.effort)
                .map(|effort| effort.as_str().to_owned()),
        ),
        (
            "background",
            fork.filter(|fork| fork.background)
                .map(|_| "true".to_owned()),
        ),
    ];
    for (name, value) in fields {
        value.iter().for_each(|value| line(name, value));
    }
    out.push_str(&format!("\n{}\n", tame(&it.body.text)));
    out
}
