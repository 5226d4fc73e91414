//! The peers' servers: how each is started, and what it says it saw.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    child::{Server, free_port},
    dialect::SPOKEN,
    http,
    judge::{Request, Witness},
    peer::{Peer, Places},
    turn::{Kind, NOTES},
};

/// What a scripted peer answers in the end.
pub(crate) const KEPT: &str = "The kettle sang before noon; rivers walked home over café bridges.";

/// What it says in an answer that breaks: long enough to break in the middle.
const LOST: &str = "zinc quorum vortex plinth umbra wyvern gizmo tundra yttrium fjord xenon \
                    jungle basalt crypt dwarf onyx sphinx quartz";

/// What the table says of a server that failed as a whole.
pub(crate) const BROKEN: &str = "the server failed";

/// How long a server may take to count an answer that has ended.
const COUNTED: Duration = Duration::from_secs(30);

/// Writes the model and serves it.
const LLAMA: &str = include_str!("llama.py");

/// A peer that is up. Dropping it ends its servers.
#[derive(Debug)]
pub(crate) struct Running {
    /// The one that is spoken to.
    server: Server,
    /// The scripted one behind it.
    upstream: Option<Server>,
    key: String,
    counts: Counts,
    /// Its files, which go with it.
    _folder: TempDir,
}

/// What it keeps of the requests it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// A journal, at this port.
    Journal(u16),
    /// The number of tokens it made.
    Tokens,
}

/// How far a server's counts were before a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

impl Running {
    pub(crate) async fn start(peer: Peer, places: &Places) -> Result<Self> {
        let folder = TempDir::new().context("cannot make a folder")?;
        // Of this run alone. LiteLLM refuses one that is short.
        let key = format!("sk-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let log = |name: &str| places.logs.join(format!("{name}.log"));
        let (server, upstream, counts) = match peer {
            Peer::Aimock => {
                let server = aimock(places, folder.path(), &log("aimock")).await?;
                let counts = Counts::Journal(server.port);
                (server, None, counts)
            }
            Peer::LlamaCpp => {
                (llama(places, folder.path(), &log("llama")).await?, None, Counts::Tokens)
            }
            Peer::Litellm => {
                let upstream = aimock(places, folder.path(), &log("litellm-upstream")).await?;
                let counts = Counts::Journal(upstream.port);
                let server =
                    litellm(places, folder.path(), upstream.port, &key, &log("litellm")).await?;
                (server, Some(upstream), counts)
            }
        };
        Ok(Self { server, upstream, key, counts, _folder: folder })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.server.port
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Ends all of it.
    pub(crate) async fn stop(self) -> Result<()> {
        let stopped = self.server.stop().await;
        if let Some(upstream) = self.upstream {
            upstream.stop().await?;
        }
        stopped
    }

    /// Where its counts are now.
    pub(crate) async fn mark(&self) -> Result<Mark> {
        Ok(Mark(match self.counts {
            Counts::Journal(port) => journal(port).await?.len() as u64,
            Counts::Tokens => tokens(self.server.port).await?,
        }))
    }

    /// What it saw since then.
    pub(crate) async fn since(&self, Mark(before): Mark) -> Result<Witness> {
        Ok(match self.counts {
            Counts::Journal(port) => {
                let seen = usize::try_from(before)?;
                let requests = journal(port).await?.into_iter().skip(seen).collect();
                Witness { journal: Some(requests), ..Witness::default() }
            }
            Counts::Tokens => {
                let made = tokens(self.server.port).await?.checked_sub(before);
                let made = made.context("its count of tokens went backwards")?;
                Witness { tokens: Some(made), ..Witness::default() }
            }
        })
    }
}

/// The scripted server, with an answer for every turn in every dialect.
async fn aimock(places: &Places, folder: &Path, log: &Path) -> Result<Server> {
    let file = folder.join("fixtures.json");
    fs::write(&file, fixtures().to_string()).context("cannot write the fixtures")?;
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg(places.aimock()).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--fixtures").arg(&file).args(["--validate-on-load", "--journal-max", "0"]);
    Server::start(command, port, "/__aimock/health", log).await.context("aimock")
}

async fn llama(places: &Places, folder: &Path, log: &Path) -> Result<Server> {
    let port = free_port()?;
    let mut command = Command::new(places.llama_python());
    command.args(["-c", LLAMA]).arg(folder.join("tiny.gguf")).arg(port.to_string());
    Server::start(command, port, "/health", log).await.context("llama.cpp")
}

async fn litellm(
    places: &Places,
    folder: &Path,
    upstream: u16,
    key: &str,
    log: &Path,
) -> Result<Server> {
    let file = folder.join("litellm.yaml");
    let model = json!({
        "model": "openai/peer",
        "api_base": format!("http://127.0.0.1:{upstream}/v1"),
        "api_key": "sk-upstream",
    });
    let config = json!({
        "model_list": [{"model_name": "peer", "litellm_params": model}],
        // A retry of its own would hide the cut from us.
        "litellm_settings": {"num_retries": 0, "request_timeout": 120},
        "router_settings": {"num_retries": 0},
    });
    // JSON is YAML too.
    fs::write(&file, config.to_string()).context("cannot write its settings")?;
    let port = free_port()?;
    let mut command = Command::new(places.litellm());
    command.arg("--config").arg(&file);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--telemetry", "False"]);
    command.env("LITELLM_MASTER_KEY", key).env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    // Its way to the peer behind it is loopback, whatever the environment says.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    Server::start(command, port, "/health/liveliness", log).await.context("LiteLLM")
}

/// What the scripted server answers to which prompt.
fn fixtures() -> Value {
    let mut fixtures = Vec::new();
    for (spoken, kind) in SPOKEN.iter().flat_map(|spoken| Kind::ALL.map(|kind| (spoken, kind))) {
        let prompt = kind.prompt(spoken);
        // Without latency the cut would come before the head of the answer.
        let first = json!({"userMessage": prompt, "sequenceIndex": 0});
        let lost = json!({"content": LOST});
        match kind {
            Kind::Text => {}
            Kind::Tool => fixtures.push(json!({
                "match": {"userMessage": prompt, "hasToolResult": false},
                "response": {"toolCalls": [
                    {"name": "Read", "arguments": json!({"path": NOTES.0}).to_string()}
                ]},
            })),
            Kind::Cut => fixtures.push(json!({
                "match": first, "response": lost,
                "chunkSize": 5, "latency": 20, "truncateAfterChunks": 10,
            })),
            Kind::Drop => fixtures.push(json!({
                "match": first, "response": lost,
                "chunkSize": 5, "latency": 100, "disconnectAfterMs": 700,
            })),
        }
        fixtures.push(json!({
            "match": {"userMessage": prompt},
            "response": {"content": KEPT},
            "chunkSize": 5, "latency": 5,
        }));
    }
    json!({"fixtures": fixtures})
}

/// Every request that the scripted server got.
async fn journal(port: u16) -> Result<Vec<Request>> {
    let text = http::get(port, "/__aimock/journal").await?;
    let entries: Vec<Value> = serde_json::from_str(&text).context("its journal is no JSON list")?;
    // Those of the control interface are not among them.
    Ok(entries.iter().map(request).collect())
}

fn request(entry: &Value) -> Request {
    let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
    let interrupted = entry.pointer("/response/interrupted").and_then(Value::as_bool);
    Request {
        path: path.to_owned(),
        body: entry.get("body").map(Value::to_string).unwrap_or_default(),
        interrupted: interrupted.unwrap_or(false),
    }
}

/// How many tokens llama.cpp made since it started, once it works on none.
async fn tokens(port: u16) -> Result<u64> {
    let idle = async {
        loop {
            let metrics = http::get(port, "/metrics").await?;
            if metric(&metrics, "llamacpp:requests_processing")? == 0 {
                return metric(&metrics, "llamacpp:tokens_predicted_total");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(COUNTED, idle).await.context("it is still at work")?
}

fn metric(metrics: &str, name: &str) -> Result<u64> {
    let values = metrics.lines().filter_map(|line| line.split_once(' '));
    let Some((_, value)) = values.into_iter().find(|(found, _)| *found == name) else {
        bail!("its metrics have no {name}");
    };
    value.trim().parse().with_context(|| format!("{name} is {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let metrics = "# HELP a x\n# TYPE a counter\na_more 7\na 48\n";
        assert_eq!(metric(metrics, "a").unwrap(), 48);
        assert!(metric(metrics, "b").is_err());
    }

    #[test]
    fn every_turn_that_breaks_has_a_first_answer_and_a_whole_one() {
        let fixtures = fixtures();
        let list = fixtures["fixtures"].as_array().unwrap();
        for (spoken, kind) in SPOKEN.iter().flat_map(|one| Kind::ALL.map(|kind| (one, kind))) {
            let prompt = kind.prompt(spoken);
            let answers: Vec<_> =
                list.iter().filter(|one| one["match"]["userMessage"] == prompt.as_str()).collect();
            assert_eq!(answers.len(), if kind == Kind::Text { 1 } else { 2 }, "{prompt}");
            assert_eq!(answers.last().unwrap()["response"]["content"], KEPT);
        }
    }
}
