//! Archives: export and import of a whole team.

use std::collections::BTreeSet;
use std::sync::Arc;

use posse_port::store::{Archive, MailFilter, Wake};
use posse_protocol::{ListId, Name, RealmId};

use super::{Fate, Model, Said, Team};

impl Model {
    /// Exports a team.
    pub fn export(&self, realm: RealmId, name: &Name) -> Option<Archive> {
        let team = self.teams.get(&(realm, name.clone()))?.shown(realm, name);
        let list = ListId {
            realm,
            team: Some(name.clone()),
        };
        let notes = self.notes(&list);
        let list = self.lists.get(&list);
        let everything = |agent| self.mail(realm, agent, MailFilter::default());
        Some(Archive {
            notes,
            tasks: list.map(|list| list.all().collect()).unwrap_or_default(),
            last_task: list.map_or(0, |list| list.last),
            mail: team
                .members
                .iter()
                .map(|member| everything(member.agent))
                .collect(),
            team,
        })
    }

    /// Creates a team from an exported archive. An existing inbox gets only mail it never had.
    pub fn import(&mut self, archive: &Archive) -> Result<(), Fate> {
        let Archive {
            team,
            notes,
            tasks,
            last_task,
            mail,
        } = archive;
        let key = (team.realm, team.name.clone());
        if self.teams.contains_key(&key) {
            return Err(Fate::BadStep);
        }
        self.feed.realm(team.realm, Archive::TOPICS);
        self.teams.insert(key, Team::from_archive(team));
        let named = notes
            .iter()
            .map(|note| (note.name.clone(), Said(note.clone())));
        let list = ListId {
            realm: team.realm,
            team: Some(team.name.clone()),
        };
        self.notes.insert(list, named.collect());
        for (member, mail) in team.members.iter().zip(mail) {
            let inbox = Arc::make_mut(self.inboxes.entry((team.realm, member.agent)).or_default());
            let known: BTreeSet<_> = inbox.0.values().map(|mail| mail.0.id).collect();
            let mut waits = false;
            for new in mail.iter().filter(|mail| !known.contains(&mail.id)) {
                let number = inbox.0.len() as u64 + 1;
                waits |= new.shown_in.is_none();
                inbox.0.insert(
                    number,
                    Said(posse_protocol::Mail {
                        number,
                        ..new.clone()
                    }),
                );
            }
            if let Some(host) = self.holder(team.realm, member.agent).filter(|_| waits) {
                self.tell(host, Wake::Mail(member.agent));
            }
        }
        let id = ListId {
            realm: team.realm,
            team: Some(team.name.clone()),
        };
        let list = self.lists.entry(id.clone()).or_default();
        list.last = list.last.max(*last_task);
        tasks.iter().for_each(|task| list.put(task));
        if !list.claimable().is_empty() {
            self.tell_claimable(&id);
        }
        Ok(())
    }
}
