//! `turnbuckle faults`: a provider that fails on purpose.

use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::ExitCode,
};

use turnbuckle_errors::Failure;
use turnbuckle_faults::{FaultServer, RecordedRequest, Script, ServeError, Step, catalogue};

use crate::{
    args::{FaultsCommand, Format, ListArgs, ServeArgs},
    nearest::hint,
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
    let script = script(args)?;
    let steps = script.to_string();
    let server = start(script, args.port).await?;
    let base_url = server.base_url();
    let root = base_url.trim_end_matches("/v1").to_owned();
    // A program that started this reads the address from the first line.
    let told = writeln!(
        io::stdout(),
        "listening on {base_url}\n{steps}\nrecord: {root}/_faults/requests\nend with Ctrl-C"
    );
    // With TLS a client has to trust the authority that signs for this server.
    let trust = server.ca_pem().map_or(Ok(()), |pem| writeln!(io::stdout(), "{}", pem.trim_end()));
    if told.and(trust).is_err() {
        return Ok(());
    }
    signalled().await;
    let record = server.stop().await;
    let requests = if record.len() == 1 { "request" } else { "requests" };
    anstream::eprintln!("{} {requests}", record.len());
    match &args.record {
        Some(path) => write_record(path, &record),
        None => Ok(()),
    }
}

fn script(args: &ServeArgs) -> Result<Script, Failure> {
    let wrong = |error: turnbuckle_faults::ScriptError| invalid(&error.to_string());
    if let Some(path) = &args.script {
        let shipped = path.to_str().filter(|name| !path.exists() && !name.contains(['/', '.']));
        return match shipped {
            Some(name) => Script::named(name).map_err(wrong),
            None => Script::from_path(path).map_err(wrong),
        };
    }
    if args.behaviour.is_empty() {
        return Err(invalid(
            "what should it do? name a script (--script FILE) or behaviours (--behaviour NAME); see `turnbuckle faults list`",
        ));
    }
    let names: Vec<&str> = catalogue::all().iter().map(|entry| entry.name).collect();
    let steps = args.behaviour.iter().map(|name| {
        Step::named(name)
            .map_err(|_| invalid(&format!("unknown behaviour `{name}`{}", hint(name, &names))))
    });
    Script::new(steps.collect::<Result<_, _>>()?).map_err(wrong)
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
        Err(error) => Err(invalid(&error.to_string())),
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
