//! The commands of the double of `globus`: each returns what it prints as JSON.

use std::io::{self, Read};

use serde_json::{Value, json};

use super::arguments::{Arguments, shell_words};
use super::endpoints::Endpoints;
use super::tasks::{self, Item, Task};
use super::{Failure, Result};
use crate::doubles::session::Session;

pub(super) fn answer(session: &Session, arguments: &Arguments) -> Result<Value> {
    match arguments.command.join(" ").as_str() {
        "transfer" => transfer(session, arguments),
        "delete" => delete(session, arguments),
        "task show" => show(session, &arguments.words[0]),
        "task list" => Ok(list_tasks(session, arguments)),
        "task cancel" => cancel(session, &arguments.words[0]),
        "ls" => list(session, arguments),
        "mkdir" => make_directory(session, &arguments.words[0]),
        "rename" => rename(session, &arguments.words),
        _ => Ok(json!({"preferred_username": "user@example.org"})),
    }
}

fn transfer(session: &Session, arguments: &Arguments) -> Result<Value> {
    let [source, destination] = &arguments.words[..] else {
        return Err(Failure::Usage("two endpoints".to_owned()));
    };
    if arguments.value("--batch") != Some("-") {
        return Err(Failure::Usage(
            "this double takes batches from its input only".to_owned(),
        ));
    }
    let endpoints = Endpoints::new(&session.folder);
    for id in [source, destination] {
        endpoints.path(id, "/")?;
    }
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::Usage(error.to_string()))?;
    let lines = text.lines().map(shell_words).collect::<Result<Vec<_>>>()?;
    let lines = lines.iter().filter(|words| !words.is_empty());
    let items = lines.map(|words| item(words)).collect::<Result<Vec<_>>>()?;
    if items.is_empty() {
        let code = "ClientError.BadRequest.NoTransferItems";
        let message = "A transfer requires at least one item".to_owned();
        return Err(Failure::Service(400, code, message));
    }
    submit(
        session,
        arguments,
        Task {
            kind: "TRANSFER".to_owned(),
            source: source.clone(),
            destination: destination.clone(),
            items,
            verify: !arguments.has("--no-verify-checksum"),
            ..Task::default()
        },
    )
}

/// Reads a line of a batch: `[--external-checksum MD5] SOURCE DESTINATION`.
fn item(words: &[String]) -> Result<Item> {
    let (md5, paths) = match words {
        [option, md5, paths @ ..] if option == "--external-checksum" => (Some(md5.as_str()), paths),
        paths => (None, paths),
    };
    match paths {
        [source, destination]
            if ![source, destination]
                .iter()
                .any(|path| path.starts_with('-')) =>
        {
            Ok(Item::new(source, destination, md5))
        }
        _ => Err(Failure::Usage(format!(
            "a line of a batch has two paths: {words:?}"
        ))),
    }
}

fn delete(session: &Session, arguments: &Arguments) -> Result<Value> {
    let (id, path) = Endpoints::split(&arguments.words[0])?;
    Endpoints::new(&session.folder).path(id, path)?;
    if arguments.has("--recursive") || arguments.has("-r") {
        return Err(Failure::Usage("this double deletes no folders".to_owned()));
    }
    submit(
        session,
        arguments,
        Task {
            kind: "DELETE".to_owned(),
            source: id.to_owned(),
            items: vec![Item::new(path, "", None)],
            ignore_missing: arguments.has("--ignore-missing") || arguments.has("-f"),
            ..Task::default()
        },
    )
}

fn submit(session: &Session, arguments: &Arguments, task: Task) -> Result<Value> {
    let label = arguments.value("--label").unwrap_or("").to_owned();
    let is_plain = |character: char| character.is_alphanumeric() || " -_,".contains(character);
    if label.len() > 128 || !label.chars().all(is_plain) {
        let message = "label may have letters, digits, spaces, and -_,".to_owned();
        return Err(Failure::Service(400, "ClientError.BadRequest", message));
    }
    let id = tasks::add(&session.folder, Task { label, ..task });
    Ok(json!({
        "DATA_TYPE": "transfer_result",
        "code": "Accepted",
        "message": "The transfer has been accepted and a task has been created and queued for execution",
        "task_id": id,
    }))
}

fn show(session: &Session, id: &str) -> Result<Value> {
    let found = tasks::all(&session.folder)
        .into_iter()
        .find(|task| task.id == id);
    found
        .map(|task| json_of(&task))
        .ok_or_else(|| Failure::Service(404, "TaskNotFound", format!("No such task '{id}'")))
}

fn json_of(task: &Task) -> Value {
    let is_ok = ["OK", "Queued"].contains(&task.nice_status.as_str());
    let fatal_error = task.fatal_error.as_ref();
    json!({
        "DATA_TYPE": "task",
        "task_id": task.id,
        "type": task.kind,
        "label": task.label,
        "status": task.status,
        "is_ok": (task.status == "ACTIVE").then_some(is_ok),
        "nice_status": (task.status == "ACTIVE").then_some(&task.nice_status),
        "nice_status_short_description": task.nice_status.to_lowercase().replace('_', " "),
        "fatal_error": fatal_error.map(|(code, description)| json!({"code": code, "description": description})),
        "faults": task.faults,
        "bytes_transferred": task.bytes,
        "files": task.items.len(),
        "files_transferred": task.done,
        "source_endpoint_id": task.source,
        "destination_endpoint_id": task.destination,
        "verify_checksum": task.verify,
    })
}

fn list_tasks(session: &Session, arguments: &Arguments) -> Value {
    let states: Vec<&str> = arguments.values("--filter-status").collect();
    let labels: Vec<&str> = arguments.values("--filter-label").collect();
    let tasks = tasks::all(&session.folder).into_iter().rev();
    let tasks = tasks.filter(|task| {
        let has_state = states.is_empty() || states.contains(&task.status.as_str());
        let has_label = labels.is_empty()
            || labels.iter().any(|label| match arguments.has("--exact") {
                true => task.label == *label,
                false => task.label.contains(label),
            });
        has_state && has_label
    });
    let limit = arguments
        .value("--limit")
        .and_then(|limit| limit.parse().ok());
    let tasks: Vec<Value> = tasks
        .take(limit.unwrap_or(10))
        .map(|task| json_of(&task))
        .collect();
    json!({"DATA": tasks})
}

fn cancel(session: &Session, id: &str) -> Result<Value> {
    show(session, id)?;
    Ok(match tasks::cancel(&session.folder, id) {
        true => json!({"code": "Canceled", "message": "The task has been cancelled successfully."}),
        false => {
            json!({"code": "TaskComplete", "message": "The task completed before the cancel request was processed."})
        }
    })
}

fn list(session: &Session, arguments: &Arguments) -> Result<Value> {
    let (id, path) = Endpoints::split(&arguments.words[0])?;
    let folder = Endpoints::new(&session.folder).path(id, path)?;
    let entries = std::fs::read_dir(folder).map_err(|error| of_io(&error, "DirListing", path))?;
    let is_hidden =
        |name: &str| name.starts_with('.') && !arguments.has("-a") && !arguments.has("--all");
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        if !is_hidden(&name) {
            files.push(json!({
                "DATA_TYPE": "file",
                "name": name,
                "type": if metadata.is_dir() { "dir" } else { "file" },
                "size": metadata.len(),
                "last_modified": "2025-08-10 20:55:00+00:00",
                "permissions": "0644",
            }));
        }
    }
    Ok(json!({"DATA": files}))
}

fn make_directory(session: &Session, word: &str) -> Result<Value> {
    let (id, path) = Endpoints::split(word)?;
    let folder = Endpoints::new(&session.folder).path(id, path)?;
    std::fs::create_dir(folder).map_err(|error| of_io(&error, "Mkdir", path))?;
    Ok(json!({"code": "DirectoryCreated", "message": "The directory was created successfully"}))
}

fn rename(session: &Session, words: &[String]) -> Result<Value> {
    let endpoints = Endpoints::new(&session.folder);
    let (old, new) = (
        endpoints.path(&words[0], &words[1])?,
        endpoints.path(&words[0], &words[2])?,
    );
    if new.exists() {
        let message = format!("Path already exists: {}", words[2]);
        return Err(Failure::Service(
            502,
            "ExternalError.RenameFailed.Exists",
            message,
        ));
    }
    std::fs::rename(old, new).map_err(|error| of_io(&error, "Rename", &words[1]))?;
    Ok(json!({"code": "FileRenamed", "message": "File or directory renamed successfully"}))
}

fn of_io(error: &io::Error, what: &str, path: &str) -> Failure {
    let message = format!("{path}: {error}");
    match (error.kind(), what) {
        (io::ErrorKind::NotFound, _) => Failure::Service(404, "ClientError.NotFound", message),
        (io::ErrorKind::PermissionDenied, _) => Failure::Service(403, "PermissionDenied", message),
        (io::ErrorKind::AlreadyExists, _) => {
            Failure::Service(502, "ExternalError.MkdirFailed.Exists", message)
        }
        _ => Failure::Service(502, "ExternalError", message),
    }
}
