//! The names by which models know the tools of servers.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

/// Longest name that all model APIs take.
const LONGEST: usize = 64;
/// Number of digits of a hash.
const DIGITS: usize = 8;

/// A tool's name for models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelToolName {
    /// The name.
    pub name: String,
    /// What is told if the name is not what people expect.
    pub remark: Option<String>,
}

/// Names of tools, each given to one tool only. A tool keeps the name that it got first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolNames {
    /// Server and tool of each name.
    taken: BTreeMap<String, (String, String)>,
}

impl ToolNames {
    /// Returns the name of a server's tool.
    pub(crate) fn name(&mut self, server: &str, tool: &str) -> ModelToolName {
        let wanted = tool_name(server, tool);
        let mut name = wanted.clone();
        let mut number = 2_u32;
        while let Some((other, its_tool)) = self.taken.get(&name) {
            if (other.as_str(), its_tool.as_str()) == (server, tool) {
                break;
            }
            let end = format!("_{number}");
            let kept = wanted.floor_char_boundary(LONGEST - end.len());
            name = format!("{}{end}", &wanted[..kept]);
            number += 1;
        }
        let owner = (server.to_owned(), tool.to_owned());
        self.taken.insert(name.clone(), owner);
        let remark = (name != wanted)
            .then(|| self.taken.get(&wanted))
            .flatten()
            .map(|(other, its_tool)| {
                format!(
                    "the tool {tool} of the server {server} is called {name}: {wanted} is {its_tool} of {other}"
                )
            });
        ModelToolName { name, remark }
    }
}

/// Returns `mcp__SERVER__TOOL`, in characters that all model APIs take. A name that is too long ends
/// with a hash of the whole one.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("mcp__{}__{}", plain(server), plain(tool));
    if name.len() <= LONGEST {
        return name;
    }
    let hash = xxh3_64(format!("{server}\0{tool}").as_bytes());
    let hash = format!("{hash:016x}");
    let kept = LONGEST - DIGITS - 1;
    format!("{}_{}", &name[..kept], &hash[..DIGITS])
}

fn plain(part: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '_' || c == '-' {
        true => c,
        false => '_',
    };
    part.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_plain_characters_and_long_names_a_hash() {
        assert_eq!(
            tool_name("git-hub", "create_issue"),
            "mcp__git-hub__create_issue"
        );
        assert_eq!(tool_name("plugin:P:S", "a.b c"), "mcp__plugin_P_S__a_b_c");
        assert_eq!(tool_name("é", "日本"), "mcp_______");
        let exact = tool_name("s", &"t".repeat(56));
        assert_eq!((exact.len(), exact.contains("t_")), (LONGEST, false));
        let (one, other) = ("t".repeat(57), "t".repeat(58));
        let [one, other] = [one, other].map(|tool| tool_name("s", &tool));
        assert_eq!((one.len(), other.len()), (LONGEST, LONGEST));
        assert_ne!(one, other);
        assert_eq!(one, tool_name("s", &"t".repeat(57)));
        assert!(one.starts_with("mcp__s__tttt"), "{one}");
    }

    #[test]
    fn a_name_is_of_one_tool_and_stays_with_it() {
        let mut names = ToolNames::default();
        let first = names.name("a", "b.c");
        assert_eq!((first.name.as_str(), &first.remark), ("mcp__a__b_c", &None));
        let second = names.name("a", "b_c");
        assert_eq!(second.name, "mcp__a__b_c_2");
        assert_eq!(
            second.remark.as_deref(),
            Some("the tool b_c of the server a is called mcp__a__b_c_2: mcp__a__b_c is b.c of a")
        );
        assert_eq!(names.name("a", "b c").name, "mcp__a__b_c_3");
        assert_eq!(names.name("a", "b.c"), first);
        assert_eq!(names.name("a", "b_c"), second);
        let owner = |name: &str| names.taken.get(name).cloned();
        assert_eq!(owner("mcp__a__b_c_2"), Some(("a".into(), "b_c".into())));
        assert_eq!(owner("mcp__a__b"), None);
        // One that is cut stays short enough.
        let long = "t".repeat(56);
        let [one, other] = [format!("{long}."), format!("{long}_")];
        let both = [names.name("s", &one).name, names.name("s", &other).name];
        assert!(both.iter().all(|name| name.len() == LONGEST) && both[0] != both[1]);
        assert_eq!(names.name("x", &"t".repeat(56)).name.len(), LONGEST);
        names
            .taken
            .insert(tool_name("y", &long), ("z".into(), "z".into()));
        let numbered = names.name("y", &long).name;
        assert!(
            numbered.len() == LONGEST && numbered.ends_with("t_2"),
            "{numbered}"
        );
    }
}
