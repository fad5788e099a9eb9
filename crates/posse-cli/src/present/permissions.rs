//! Permission rules in force, for people.

use std::path::Path;

use posse_permission::Policy;

use crate::definitions::shown;
use crate::output::table::{Column, needed, table};
use crate::output::tame;

const COLUMNS: [Column; 3] = [needed("DOES"), needed("FROM"), needed("RULE")];

/// Returns all rules with where each comes from, those that deny first.
pub(crate) fn rules(policy: &Policy, cwd: &Path) -> String {
    let rows: Vec<Vec<String>> = policy
        .rules()
        .iter()
        .map(|rule| {
            vec![
                rule.list.to_owned(),
                shown(Path::new(rule.source), cwd),
                tame(rule.rule),
            ]
        })
        .collect();
    let mut text = match rows.is_empty() {
        true => "there are no rules: the mode alone decides\n".to_owned(),
        false => table(&COLUMNS, &rows, None),
    };
    if let Some(tools) = policy.only_tools() {
        text.push_str(&format!("only these tools: {}\n", tame(&tools.join(", "))));
    }
    text
}

#[cfg(test)]
mod tests {
    use posse_permission::{RuleList, Source};

    use super::*;

    #[test]
    fn each_rule_has_its_source() {
        let source = |name: &str| Source {
            name: name.into(),
            root: "/".into(),
            cwd: "/work".into(),
            home: None,
        };
        let mut policy = Policy::default();
        assert_eq!(
            rules(&policy, Path::new("/work")),
            "there are no rules: the mode alone decides\n"
        );
        let list = RuleList {
            deny: vec!["Bash(rm *)".into()],
            allow: vec!["Edit".into()],
            ..RuleList::default()
        };
        policy
            .add(&source("/work/.posse/settings.json"), &list)
            .unwrap();
        let ask = RuleList {
            ask: vec!["Bash(git push *)".into()],
            ..RuleList::default()
        };
        policy.add(&source("this session"), &ask).unwrap();
        policy.limit_to_tools(vec!["Bash".into()]);
        assert_eq!(
            rules(&policy, Path::new("/work")),
            "DOES   FROM                  RULE\n\
             deny   .posse/settings.json  Bash(rm *)\n\
             ask    this session          Bash(git push *)\n\
             allow  .posse/settings.json  Edit\n\
             only these tools: Bash\n"
        );
    }
}
