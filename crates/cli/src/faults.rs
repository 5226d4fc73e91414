//! `turnbuckle faults`: a provider that fails on purpose.

use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::ExitCode,
};

use turnbuckle_errors::Failure;
use turnbuckle_faults::{
    FaultServer, Protocol, RecordedRequest, Script, ScriptError, ServeError, Step, Tls, catalogue,
};

use crate::{
    args::{FaultsCommand, Format, ListArgs, ServeArgs},
    nearest::nearest,
    refusal::{invalid, tell},
    signals::signalled,
};

/// How many ports after a taken one are tried, to name a free one.
const PORTS_TO_TRY: u16 = 50;

pub(crate) async fn faults(command: FaultsCommand) -> ExitCode {
    let ended = match command {
        FaultsCommand::List(args) => match list(&args) {
            // Whoever read it has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            listed => listed.map_err(|error| invalid(&error.to_string())),
        },
        FaultsCommand::Serve(args) => serve(&args).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => tell(&failure, Format::Text),
    }
}

fn list(args: &ListArgs) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    if args.json {
        for entry in catalogue::all() {
            let line = serde_json::json!({
                "name": entry.name, "sentence": entry.sentence, "core": entry.core,
                "needs": entry.needs(), "expected": entry.expected,
            });
            writeln!(out, "{line}")?;
        }
        return out.flush();
    }
    writeln!(out, "Behaviours (for --behaviour, and for steps of a script):")?;
    for entry in catalogue::all() {
        let code = entry.expected.code.unwrap_or("answers");
        writeln!(out, "  {:<26} {:<27} {}", entry.name, code, entry.sentence)?;
    }
    writeln!(out, "\nShipped scripts (for --script):")?;
    for script in Script::shipped() {
        writeln!(out, "  {:<26} {}", script.name, script.sentence)?;
    }
    writeln!(out, "\nTry: turnbuckle faults serve --behaviour cut_inside_event --behaviour whole")?;
    out.flush()
}

async fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let script = configured(script(args)?, args).map_err(|error| refusal(&error))?;
    if args.ca_file.is_some() && !script.serving().speaks_tls() {
        return Err(invalid("--ca-file has no effect without TLS: add --tls"));
    }
    let steps = script.to_string();
    let ca_file = script.serving().ca_file_path().map(Path::to_owned);
    let server = start(script, args.port).await?;
    let base_url = server.base_url();
    let root = base_url.trim_end_matches("/v1").to_owned();
    let seed = server.seed().map(|seed| format!("seed: {seed}\n")).unwrap_or_default();
    // Before anything is told: a program that started this may end it at once.
    let end = signalled();
    // It reads the address from the first line.
    let told = writeln!(
        io::stdout(),
        "listening on {base_url}\n{steps}\n{seed}record: {root}/_faults/requests\nend with Ctrl-C"
    );
    // With TLS a client has to trust the authority that signs for this server.
    let trust = match (server.ca_pem(), ca_file) {
        (None, _) => Ok(()),
        (Some(_), Some(path)) => writeln!(io::stdout(), "authority: {}", path.display()),
        (Some(pem), None) => writeln!(io::stdout(), "{}", pem.trim_end()),
    };
    if told.and(trust).is_err() {
        return Ok(());
    }
    end.await;
    let record = server.stop().await;
    let requests = if record.len() == 1 { "request" } else { "requests" };
    anstream::eprintln!("{} {requests}", record.len());
    match &args.record {
        Some(path) => write_record(path, &record),
        None => Ok(()),
    }
}

fn script(args: &ServeArgs) -> Result<Script, Failure> {
    if let Some(path) = &args.script {
        let shipped = path.to_str().filter(|name| !path.exists() && !name.contains(['/', '.']));
        return match shipped {
            Some(name) => Script::named(name).map_err(|error| refusal(&error)),
            None => Script::from_path(path).map_err(|error| unread(path, &error)),
        };
    }
    if args.behaviour.is_empty() {
        return Err(invalid(
            "what should it do? name a script (--script FILE) or behaviours (--behaviour NAME); see `turnbuckle faults list`",
        ));
    }
    let steps = args.behaviour.iter().map(|name| Step::named(name));
    steps.collect::<Result<_, _>>().and_then(Script::new).map_err(|error| refusal(&error))
}

/// The script with what the command line says of its server and its dice.
fn configured(script: Script, args: &ServeArgs) -> Result<Script, ScriptError> {
    let mut script = script;
    if let Some(seed) = args.seed {
        let dealing = script.dealing().clone().seed(seed);
        script = script.dealt(dealing)?;
    }
    let mut serving = script.serving().clone();
    if args.tls && !serving.speaks_tls() {
        serving = serving.tls(Tls::Good);
    }
    if args.http2 {
        serving = serving.protocol(Protocol::Http2);
    }
    if let Some(path) = &args.ca_file {
        serving = serving.ca_file(path);
    }
    if serving == *script.serving() { Ok(script) } else { script.on(serving) }
}

/// The error with its causes, in one line.
fn refusal(error: &dyn std::error::Error) -> Failure {
    let causes = std::iter::successors(Some(error), |error| error.source());
    invalid(&causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
}

/// The same for a script; a file that is not there is looked for among its
/// neighbours.
fn unread(path: &Path, error: &ScriptError) -> Failure {
    let told = refusal(error);
    if path.exists() {
        return told;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let listed = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    let named =
        listed.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let scripts: Vec<String> = named.filter(|name| name.ends_with(".toml")).collect();
    let names: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let given = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match nearest(given, &names) {
        Some(near) => invalid(&format!("{}; did you mean `{near}`?", told.message())),
        None => told,
    }
}

async fn start(script: Script, port: u16) -> Result<FaultServer, Failure> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match FaultServer::start(script, at(port)).await {
        Ok(server) => Ok(server),
        Err(ServeError::Bind { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            let free = (port.saturating_add(1)..port.saturating_add(PORTS_TO_TRY))
                .find(|port| std::net::TcpListener::bind(at(*port)).is_ok());
            let hint = free.map(|port| format!("; free is --port {port}")).unwrap_or_default();
            Err(invalid(&format!("port {port} is in use{hint}")))
        }
        Err(error) => Err(refusal(&error)),
    }
}

fn write_record(path: &Path, record: &[RecordedRequest]) -> Result<(), Failure> {
    let lines: Result<String, serde_json::Error> = record
        .iter()
        .map(|request| serde_json::to_string(request).map(|line| line + "\n"))
        .collect();
    let written = lines.map_err(io::Error::other).and_then(|lines| std::fs::write(path, lines));
    written.map_err(|error| {
        invalid(&format!("the record cannot be written to {}: {error}", path.display()))
    })
}
