//! Executes commands on the store, one per line: `birth N`, `commit N EPOCH`, `claim N EPOCH TASK`,
//! `take N`, `release N EPOCH`. The answer is the line's first word and the result; `take` adds the
//! epoch. Wakes of the host are printed as they arrive: `woke died ID`.

use posse_port::store::{Epoch, Store, Wake};
use posse_store::Timing;
use posse_testkit::place::Place;
use posse_testkit::store_contract::{acts, agent, birth, claim, fate, step};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::Failed;

pub(crate) async fn run(place: &Place, timing: Timing) -> Result<(), Failed> {
    let store = place.open_with(timing)?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    println!("ready");
    loop {
        tokio::select! {
            woken = store.woken() => woken?.iter().for_each(|wake| println!("woke {}", word(wake))),
            line = lines.next_line() => match line? {
                Some(line) => println!("{}", obey(&*store, &line).await?),
                None => return Ok(()),
            },
        }
    }
}

async fn obey(store: &dyn Store, line: &str) -> Result<String, Failed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Ok(match words[..] {
        ["birth", number] => format!(
            "birth {}",
            fate(&store.commit(birth(number.parse()?)).await)
        ),
        ["commit", number, epoch] => {
            format!(
                "commit {}",
                fate(&store.commit(step(number.parse()?, epoch.parse()?)).await)
            )
        }
        ["claim", number, epoch, task] => {
            let claims = vec![claim("", task.parse()?)];
            let step = acts(number.parse()?, epoch.parse()?, claims);
            format!("claim {}", fate(&store.commit(step).await))
        }
        ["take", number] => match store.take(agent(number.parse()?)).await {
            Ok(taken) => format!("take ok {}", taken.epoch.0),
            refused => format!("take {}", fate(&refused)),
        },
        ["release", number, epoch] => {
            let released = store
                .release(agent(number.parse()?), Epoch(epoch.parse()?))
                .await;
            format!("release {}", fate(&released))
        }
        _ => return Err(format!("what is meant by {line}").into()),
    })
}

fn word(wake: &Wake) -> String {
    match wake {
        Wake::Mail(agent) => format!("mail {agent}"),
        Wake::Tasks(list) => {
            let team = list.team.as_ref().map_or("", |team| team.as_str());
            format!("tasks {} {team}", list.realm)
        }
        Wake::Died(host) => format!("died {host}"),
        Wake::Fenced => "fenced".into(),
    }
}
