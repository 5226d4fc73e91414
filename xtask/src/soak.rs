//! Many sessions for a long time, against a provider of which a part of the answers
//! fails: nothing may be lost, and nothing may grow.
//!
//! Provider and sessions share this process, so what either of them leaves behind is
//! seen. Everything is real but the model: sockets, the client, the runtime, tools, and
//! every wait at its full length.

mod gauge;
mod latency;
mod script;
mod sessions;

use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::time::{self, Instant};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_faults::FaultServer;
use turnbuckle_providers::Clocks;
use turnbuckle_runtime::Runtime;
use turnbuckle_tools::{
    DenyAll, PermissionMode, ToolSet,
    builtin::{self, Workspace},
};

use self::{
    gauge::{Course, Held},
    latency::Latency,
    sessions::{Shared, Sum},
};
use crate::{
    faults::{Client, Dialect, provider},
    terminal::{say, table},
};

/// Of the whole time, the part without faults.
const SMOOTH_PART: f64 = 0.2;

/// Of the time with faults, the part in which pools and caches fill.
const WARM_UP_PART: f64 = 0.25;

/// What is held is looked at so often.
const LOOKED: Duration = Duration::from_millis(500);

/// The record of the server is emptied so often: it is a record for tests, and grows.
const EMPTIED: Duration = Duration::from_secs(5);

/// How long what is given up may take to be gone at the end.
const GONE: Duration = Duration::from_secs(20);

/// The options of `soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long, in minutes: a fifth of it without faults, for comparison.
    #[arg(long, default_value_t = 5.0, value_parser = at_least(0.01))]
    minutes: f64,
    /// How many sessions are alive at once.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// How many of a hundred requests meet a fault.
    #[arg(long, default_value_t = 5.0, value_parser = at_least(0.0))]
    faults: f64,
    /// The dialect that is spoken.
    #[arg(long, value_enum, default_value_t = Dialect::Chat)]
    dialect: Dialect,
    /// Chooses the faults and how long people read.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plants a leak, to see it found.
    #[arg(long)]
    plant_leak: bool,
}

fn at_least(least: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= least => Ok(number),
        _ => Err(format!("a number of at least {least} is wanted")),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    say(format_args!(
        "{} sessions for {} minutes, {} % of the requests meet a fault, seed {}\n",
        args.sessions, args.minutes, args.faults, args.seed
    ));
    let complaints = runtime.block_on(play(args))?;
    complaints.iter().for_each(|complaint| say(format_args!("BROKEN  {complaint}")));
    say(if complaints.is_empty() { "nothing lost, nothing grown" } else { "not flat, or lost" });
    Ok(ExitCode::from(u8::from(!complaints.is_empty())))
}

/// Plays both phases, tells their figures, and says what is wrong.
async fn play(args: &Args) -> Result<Vec<String>> {
    let before = Held::now();
    let folder = tempfile::tempdir().context("cannot make a workspace")?;
    fs::write(folder.path().join(script::NOTES), "the kettle sang before noon\n")
        .context("cannot write the notes")?;
    let whole = Duration::from_secs_f64(args.minutes * 60.0);
    let smooth = phase(args, 0.0, whole.mul_f64(SMOOTH_PART), folder.path()).await?;
    let faulty = phase(args, args.faults, whole.mul_f64(1.0 - SMOOTH_PART), folder.path()).await?;
    let left = left_behind(before).await;

    let courses = gauge::courses(&faulty.watched);
    tell(&smooth, &faulty, &courses, (before, left));
    let mut complaints: Vec<String> =
        [&smooth, &faulty].into_iter().flat_map(Phase::complaints).collect();
    let grown = courses.iter().filter(|course| !course.is_flat());
    complaints.extend(grown.map(|course| {
        format!("{} grew from {} to {} {}", course.what, course.first, course.last, course.unit)
    }));
    if left.tasks > before.tasks {
        complaints.push(format!("{} tasks are left behind", left.tasks - before.tasks));
    }
    if left.descriptors > before.descriptors + 2 {
        let more = left.descriptors - before.descriptors;
        complaints.push(format!("{more} descriptors are left behind"));
    }
    Ok(complaints)
}

/// What is held after the end, as soon as it is what was held before, or at last.
async fn left_behind(before: Held) -> Held {
    let began = Instant::now();
    loop {
        let held = Held::now();
        let gone = held.tasks <= before.tasks && held.descriptors <= before.descriptors + 2;
        if gone || began.elapsed() > GONE {
            return held;
        }
        time::sleep(Duration::from_millis(50)).await;
    }
}

/// What came of one phase.
struct Phase {
    sum: Sum,
    /// Requests by the server's count, and those of them that met a fault.
    requests: (usize, usize),
    /// What was held after the warm-up.
    watched: Vec<Held>,
    took: Duration,
}

impl Phase {
    fn complaints(&self) -> Vec<String> {
        let Sum { begun, done, lost, completed, .. } = &self.sum;
        let mut complaints: Vec<String> =
            lost.iter().take(10).map(|why| format!("a session is lost: {why}")).collect();
        if lost.is_empty() && begun != done {
            complaints.push(format!("{begun} sessions began, {done} came to their end"));
        }
        if *completed == 0 {
            complaints.push("no prompt completed".to_owned());
        }
        complaints
    }
}

async fn phase(args: &Args, faults: f64, length: Duration, folder: &Path) -> Result<Phase> {
    let server = FaultServer::start_anywhere(script::script(faults, args.seed)?).await?;
    let shared = Arc::new(Shared {
        runtime: runtime(args.dialect, &server, folder)?,
        stop: AtomicBool::new(false),
        sum: Mutex::new(Sum::default()),
        leaks: args.plant_leak,
    });
    let began = Instant::now();
    let players: Vec<_> = (0..u64::from(args.sessions))
        .map(|number| {
            let seed = args.seed.wrapping_mul(10_007).wrapping_add(number);
            tokio::spawn(sessions::play(Arc::clone(&shared), seed))
        })
        .collect();
    let mut watched = Vec::new();
    let mut requests = (0, 0);
    let mut emptied = Instant::now();
    while began.elapsed() < length {
        time::sleep(LOOKED.min(length)).await;
        if emptied.elapsed() > EMPTIED {
            requests = counted(&server, requests);
            server.reset();
            emptied = Instant::now();
        }
        if began.elapsed() > length.mul_f64(WARM_UP_PART) {
            watched.push(Held::now());
        }
    }
    shared.stop.store(true, Ordering::Relaxed);
    for player in players {
        if player.await.is_err() {
            let mut sum = shared.sum.lock().unwrap_or_else(PoisonError::into_inner);
            sum.lost.push("its task broke down".to_owned());
        }
    }
    let took = began.elapsed();
    requests = counted(&server, requests);
    let sum = std::mem::take(&mut *shared.sum.lock().unwrap_or_else(PoisonError::into_inner));
    drop(shared);
    server.stop().await;
    Ok(Phase { sum, requests, watched, took })
}

fn counted(server: &FaultServer, so_far: (usize, usize)) -> (usize, usize) {
    let requests = server.requests();
    let faults = requests.iter().filter(|one| one.behaviour.as_deref() != Some("whole")).count();
    (so_far.0 + requests.len(), so_far.1 + faults)
}

fn runtime(dialect: Dialect, server: &FaultServer, folder: &Path) -> Result<Runtime> {
    let redactor = Arc::new(Redactor::new([]));
    // A server that falls silent is met often, so that is found out soon; on a busy
    // machine the others need their time.
    let clock = Duration::from_secs(15);
    let clocks = Clocks { first_event: clock, byte_idle: clock, ..Clocks::default() };
    let provider = provider(Client {
        dialect,
        url: server.base_url(),
        authority: server.ca_pem(),
        key: "sk-soak",
        clocks,
        redactor: Arc::clone(&redactor),
    })?;
    let workspace = Workspace::open(folder).context("cannot open the workspace")?;
    let tools = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
    Ok(Runtime::builder(provider, "a-model")
        .system(builtin::SYSTEM_PROMPT)
        .tools(tools.with_permissions(PermissionMode::ReadOnly, Arc::new(DenyAll)))
        .redactor(redactor)
        .build())
}

fn tell(smooth: &Phase, faulty: &Phase, courses: &[Course], (before, left): (Held, Held)) {
    for (name, phase) in [("without faults", smooth), ("with faults", faulty)] {
        let Sum { begun, completed, failed, retries, calls, .. } = &phase.sum;
        let (requests, faults) = phase.requests;
        let percent = 100.0 * faults as f64 / requests.max(1) as f64;
        say(format_args!(
            "{name}: {:.0} s, {begun} sessions, {completed} prompts completed, {failed} failed, \
             {calls} calls; {requests} requests, {faults} met a fault ({percent:.1} %), \
             {retries} retries",
            phase.took.as_secs_f64()
        ));
    }
    let rows = [
        Latency::head(),
        smooth.sum.all.row("without faults"),
        faulty.sum.all.row("with faults"),
        faulty.sum.smooth.row("  of them without a retry"),
        faulty.sum.retried.row("  of them with one or more"),
    ];
    say(format_args!("\n{}", table(&rows)));
    let mut rows = vec![
        ["after the warm-up", "at first", "at last", "most", "", "before", "after all"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for course in courses {
        let ends = match course.what {
            "memory" => (before.memory_kib, left.memory_kib),
            "tasks" => (before.tasks, left.tasks),
            _ => (before.descriptors, left.descriptors),
        };
        let Course { what, unit, first, last, most, .. } = course;
        let flat = if course.is_flat() { "flat" } else { "GROWN" };
        let numbers =
            [first, last, most].map(|number| format!("{number} {unit}").trim().to_owned());
        let [first, last, most] = numbers;
        let row = [what, first.as_str(), &last, &most, flat].map(str::to_owned);
        let mut row = row.to_vec();
        row.extend([ends.0.to_string(), ends.1.to_string()]);
        rows.push(row);
    }
    say(format_args!("\n{}\n", table(&rows)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(plant_leak: bool) -> Args {
        Args {
            minutes: 0.1,
            sessions: 20,
            faults: 10.0,
            dialect: Dialect::Chat,
            seed: 3,
            plant_leak,
        }
    }

    fn played(args: &Args) -> Vec<String> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap().block_on(play(args)).unwrap()
    }

    /// Descriptors and memory are those of the whole process, in which other tests run
    /// beside this one; tasks are of its own runtime.
    fn of_tasks(complaints: Vec<String>) -> Vec<String> {
        let others = |complaint: &String| {
            complaint.contains("descriptors") || complaint.starts_with("memory")
        };
        complaints.into_iter().filter(|complaint| !others(complaint)).collect()
    }

    #[test]
    fn sessions_among_faults_lose_nothing_and_leave_nothing_behind() {
        assert_eq!(of_tasks(played(&args(false))), [""; 0]);
    }

    #[test]
    fn a_task_that_each_prompt_leaves_behind_is_found() {
        let found = of_tasks(played(&args(true)));
        assert!(found.iter().any(|complaint| complaint.starts_with("tasks grew")), "{found:?}");
        assert!(found.iter().any(|complaint| complaint.contains("left behind")), "{found:?}");
    }
}
