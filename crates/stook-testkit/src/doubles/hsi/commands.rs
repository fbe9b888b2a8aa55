//! The commands of the double of `hsi`.

use std::fs::File;
use std::io::{self, Write};

use md5::{Digest, Md5};

use super::Hsi;
use super::files::Movement;
use super::grammar::{Arguments, pairs, requests};
use crate::doubles::session::{Turn, change_counters};

/// Why a command failed.
pub(super) enum Failure {
    /// These words, and this exit code.
    Said(String, u8),
    /// HPSS gave this error for this path.
    Hpss(&'static str, i32, String),
    /// The login ran out.
    Login,
    /// It was the command that ends the session.
    Ended,
}

impl Failure {
    pub(super) fn grammar(message: &str) -> Self {
        Self::Said(format!("*** hsi: syntax error: {message}"), 64)
    }

    pub(super) fn text(&self) -> (String, u8) {
        match self {
            Self::Said(text, code) => (text.clone(), *code),
            Self::Hpss(name, number, path) => {
                let text = format!("*** {path}: Error {number} ({name})");
                (text, if *number == -2 { 64 } else { 72 })
            }
            Self::Login | Self::Ended => (String::new(), 70),
        }
    }
}

type Result = std::result::Result<(), Failure>;

fn of_io(path: &str) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| {
        let (name, number) = match error.kind() {
            io::ErrorKind::NotFound => ("HPSS_ENOENT", -2),
            io::ErrorKind::PermissionDenied => ("HPSS_EACCES", -13),
            io::ErrorKind::AlreadyExists => ("HPSS_EEXIST", -17),
            io::ErrorKind::StorageFull => ("HPSS_ENOSPACE", -28),
            _ => ("HPSS_EIO", -5),
        };
        Failure::Hpss(name, number, path.clone())
    }
}

impl Hsi {
    pub(super) fn command(&mut self, name: &str, words: &[String], listed: &[String]) -> Result {
        let of = |flags, valued| {
            Arguments::of(words, flags, valued).map_err(|message| Failure::grammar(&message))
        };
        match name {
            "quit" | "exit" | "end" => Err(Failure::Ended),
            "cd" => self.change_remote(&of("", "")?),
            "lcd" => self.change_local(&of("", "")?),
            "ls" | "list" => self.list(&of("aAlNU1X", "")?),
            "mkdir" => self.make_directory(&of("p", "")?),
            "touch" => self.touch(&of("", "")?),
            "rm" | "delete" => self.remove(&of("", "")?),
            "mv" | "rename" => self.rename(&of("f", "")?),
            "chgrp" => one_or_more(&of("R", "")?, 2),
            "put" | "save" => self.put(&of("BbdhPpQRU", "cFHMT")?),
            "get" => self.get(&of("ACNS", "cFHT")?, listed),
            "hashlist" | "hashli" | "lshash" => self.list_hashes(&of("AR", "")?),
            "hashcreate" | "hashcr" => self.create_hashes(&of("ACNRS", "H")?),
            "hashverify" | "hashver" => self.verify_hashes(&of("ACNRS", "H")?),
            _ => Err(Failure::grammar(&format!("unknown command {name}"))),
        }
    }

    fn change_remote(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        let path = self.absolute(&arguments.words[0]);
        match self.files.data(&path).is_dir() {
            true => self.remote = path,
            false => return Err(Failure::Hpss("HPSS_ENOENT", -2, path)),
        }
        Ok(())
    }

    fn change_local(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        let path = self.local.join(&arguments.words[0]);
        if !path.is_dir() {
            return Err(Failure::Said(
                format!("*** lcd: {}: No such file or directory", path.display()),
                66,
            ));
        }
        self.local = path;
        Ok(())
    }

    fn list(&mut self, arguments: &Arguments) -> Result {
        let here = [".".to_owned()];
        let names = match arguments.words.is_empty() {
            true => &here[..],
            false => &arguments.words[..],
        };
        let mut missing = None;
        for name in names {
            let path = self.absolute(name);
            let data = self.files.data(&path);
            if data.is_dir() {
                if !arguments.has('N') {
                    self.say(&format!("{path}:"));
                }
                let entries = std::fs::read_dir(data).map_err(of_io(&path))?;
                let names = entries.flatten().map(|entry| entry.file_name());
                let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
                names.retain(|name| arguments.has('a') || !name.starts_with('.'));
                names.sort();
                for name in names {
                    self.list_one(&format!("{path}/{name}"), arguments)?;
                }
            } else if self.list_one(&path, arguments).is_err() {
                missing = Some(path);
            }
        }
        match missing {
            Some(path) => Err(Failure::Hpss("HPSS_ENOENT", -2, path)),
            None => Ok(()),
        }
    }

    fn list_one(&self, path: &str, arguments: &Arguments) -> Result {
        let metadata = self.files.data(path).metadata().map_err(of_io(path))?;
        let name = match arguments.has('N') {
            true => path,
            false => path.rsplit('/').next().unwrap_or(path),
        };
        let (size, kind) = (metadata.len(), if metadata.is_dir() { 'd' } else { '-' });
        let place = match self.files.known(path).and_then(|known| known.tape) {
            Some(_) => "TAPE",
            None => "DISK",
        };
        let line = match (arguments.has('l'), arguments.has('U')) {
            (_, true) => format!(
                "{kind}rw-r-----    1 user      hpss          1       740536 {place}  {size:>12} Aug 10 20:55 {name}"
            ),
            (true, false) => {
                format!("{kind}rw-r-----    1 user      hpss  {size:>18} Aug 10 2025  {name}")
            }
            (false, false) => name.to_owned(),
        };
        self.say(&line);
        Ok(())
    }

    fn make_directory(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        for name in &arguments.words {
            let path = self.absolute(name);
            let data = self.files.data(&path);
            let made = match arguments.has('p') {
                true => std::fs::create_dir_all(data),
                false => std::fs::create_dir(data),
            };
            made.map_err(of_io(&path))?;
        }
        Ok(())
    }

    fn touch(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        for name in &arguments.words {
            let path = self.absolute(name);
            File::options()
                .append(true)
                .create(true)
                .open(self.files.data(&path))
                .map_err(of_io(&path))?;
        }
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        for name in &arguments.words {
            let path = self.absolute(name);
            self.files.remove(&path).map_err(of_io(&path))?;
        }
        Ok(())
    }

    fn rename(&mut self, arguments: &Arguments) -> Result {
        let [from, to] = &arguments.words[..] else {
            return Err(Failure::grammar("mv [-f] OLD NEW"));
        };
        let (from, to) = (self.absolute(from), self.absolute(to));
        let may_replace = arguments.has('f') && !self.session.trouble.never_replaces;
        if self.files.data(&to).exists() && !may_replace {
            return Err(Failure::Hpss("HPSS_EEXIST", -17, to));
        }
        self.files.rename(&from, &to).map_err(of_io(&from))
    }

    fn put(&mut self, arguments: &Arguments) -> Result {
        let (keywords, words): (Vec<_>, Vec<_>) =
            arguments.words.iter().cloned().partition(|word| {
                word.strip_prefix("cos=")
                    .is_some_and(|number| number.parse::<u32>().is_ok())
            });
        let pairs = pairs(&words).map_err(|message| Failure::grammar(&message))?;
        if pairs.is_empty() || keywords.len() > 1 {
            return Err(Failure::grammar("put [cos=N] LOCAL : REMOTE ..."));
        }
        let has_hash = on_or_off(arguments)?;
        for (local, remote) in pairs {
            let last = remote.rsplit('/').next().unwrap_or(&remote);
            let local = local.unwrap_or_else(|| last.to_owned());
            self.put_one(&local, &self.absolute(&remote), has_hash)?;
        }
        Ok(())
    }

    fn put_one(&mut self, local: &str, path: &str, has_hash: bool) -> Result {
        let missing = |error| Failure::Said(format!("*** put: {local}: {error}"), 72);
        let bytes = std::fs::read(self.local.join(local)).map_err(missing)?;
        let turn = self.session.transfer();
        let size = bytes.len() as u64;
        let room = self.session.trouble.capacity.unwrap_or(u64::MAX);
        if self.files.total_bytes() + size > room {
            return Err(Failure::Hpss("HPSS_ENOSPACE", -28, path.to_owned()));
        }
        let mut file = File::create(self.files.data(path)).map_err(of_io(path))?;
        let mut source = &bytes[..];
        let counted = |counters: &mut crate::doubles::Counters, len| counters.bytes_in += len;
        self.session
            .copy(&mut source, &mut file, turn, size, counted)
            .map_err(of_io(path))?;
        if turn == Turn::Fails {
            return Err(Failure::Said(
                format!("put: Error -5 on transfer. {local} to {path}"),
                72,
            ));
        }
        if !self.session.is_logged_in() {
            return Err(Failure::Login);
        }
        let md5 = has_hash.then(|| self.hash_told(&bytes));
        self.files.add(path, md5, self.session.trouble.tapes);
        if !self.is_popen {
            self.say(&format!(
                "put  '{local}' : '{path}' ( {size} bytes, 25094.1 KBS (cos=1))"
            ));
        }
        Ok(())
    }

    fn get(&mut self, arguments: &Arguments, listed: &[String]) -> Result {
        let mut words = arguments.words.clone();
        for line in listed {
            let requests = requests(line).map_err(|message| Failure::grammar(&message))?;
            words.extend(requests.into_iter().flat_map(|request| request.words));
        }
        let pairs = pairs(&words).map_err(|message| Failure::grammar(&message))?;
        let mut files: Vec<(String, String)> = pairs
            .into_iter()
            .map(|(local, remote)| {
                let last = remote.rsplit('/').next().unwrap_or(&remote).to_owned();
                (local.unwrap_or(last), self.absolute(&remote))
            })
            .collect();
        if arguments.has('A') {
            files.sort_by_key(|(_, path)| self.files.known(path).and_then(|known| known.tape));
        }
        let mut failure = Ok(());
        for (local, path) in files {
            match self.get_one(&local, &path) {
                Err(Failure::Login) => return Err(Failure::Login),
                Err(failed) => {
                    self.say(&failed.text().0);
                    failure = Err(Failure::Said("*** get: not all files".to_owned(), 72));
                }
                Ok(()) => {}
            }
        }
        failure
    }

    fn get_one(&mut self, local: &str, path: &str) -> Result {
        let mut source = File::open(self.files.data(path)).map_err(of_io(path))?;
        let size = source.metadata().map_err(of_io(path))?.len();
        let movement = self.files.wind_to(path);
        change_counters(&self.session.folder, |counters| match movement {
            Movement::Mounted => counters.mounts += 1,
            Movement::Rewound => counters.rewinds += 1,
            Movement::None => {}
        });
        let missing = |error| Failure::Said(format!("*** get: {local}: {error}"), 72);
        let mut file = File::create(self.local.join(local)).map_err(missing)?;
        let turn = self.session.transfer();
        let counted = |counters: &mut crate::doubles::Counters, len| counters.bytes_out += len;
        self.session
            .copy(&mut source, &mut file, turn, size, counted)
            .map_err(of_io(path))?;
        if turn == Turn::Fails {
            return Err(Failure::Said(
                format!("get: Error -5 on transfer. {path} to {local}"),
                72,
            ));
        }
        if !self.session.is_logged_in() {
            return Err(Failure::Login);
        }
        if !self.is_popen {
            self.say(&format!(
                "get  '{local}' : '{path}' (2025/08/10 20:55:29 {size} bytes, 25094.1 KBS )"
            ));
        }
        Ok(())
    }

    fn list_hashes(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        for name in &arguments.words {
            let path = self.absolute(name);
            self.files.data(&path).metadata().map_err(of_io(&path))?;
            match self.files.known(&path).and_then(|known| known.md5) {
                Some(md5) => self.say(&format!("{md5} md5 {path} [hsi]")),
                None => self.say(&format!("(none) {path}")),
            }
        }
        Ok(())
    }

    fn create_hashes(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        for name in &arguments.words {
            let path = self.absolute(name);
            let md5 = self.hash_told(&self.read_back(&path)?);
            self.say(&format!("{md5} (md5) {path}"));
            self.files.set_md5(&path, Some(md5));
        }
        Ok(())
    }

    fn verify_hashes(&mut self, arguments: &Arguments) -> Result {
        one_or_more(arguments, 1)?;
        let mut failure = Ok(());
        for name in &arguments.words {
            let path = self.absolute(name);
            let found = self.hash_told(&self.read_back(&path)?);
            let stored = self.files.known(&path).and_then(|known| known.md5);
            let line = match stored {
                Some(stored) if stored == found => format!("{path}: (md5) OK"),
                Some(_) => format!("*** {path}: (md5) checksum mismatch"),
                None => format!("*** {path}: no valid checksum found"),
            };
            if line.starts_with('*') {
                failure = Err(Failure::Said(
                    "*** hashverify: not all files".to_owned(),
                    72,
                ));
            }
            self.say(&line);
        }
        failure
    }

    /// Reads a file where it lies, which moves the drive and the bytes.
    fn read_back(&self, path: &str) -> std::result::Result<Vec<u8>, Failure> {
        let bytes = std::fs::read(self.files.data(path)).map_err(of_io(path))?;
        let movement = self.files.wind_to(path);
        let mut sink = io::sink();
        let counted = |counters: &mut crate::doubles::Counters, _| counters.sessions += 0;
        change_counters(&self.session.folder, |counters| {
            counters.mounts += u64::from(movement == Movement::Mounted);
        });
        let size = bytes.len() as u64;
        self.session
            .copy(&mut &bytes[..], &mut sink, Turn::Whole, size, counted)
            .and_then(|_| sink.flush())
            .map_err(of_io(path))?;
        Ok(bytes)
    }

    fn hash_told(&self, bytes: &[u8]) -> String {
        let mut digest = Md5::new();
        digest.update(bytes);
        if self.session.trouble.lies {
            digest.update(b"a lie");
        }
        let bytes: [u8; 16] = digest.finalize().into();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn one_or_more(arguments: &Arguments, least: usize) -> Result {
    match arguments.words.len() >= least && !arguments.words.iter().any(|word| word == ":") {
        true => Ok(()),
        false => Err(Failure::grammar("a path is missing")),
    }
}

fn on_or_off(arguments: &Arguments) -> std::result::Result<bool, Failure> {
    match (arguments.value('c'), arguments.value('H')) {
        (None | Some("off"), None) => Ok(false),
        (Some("on"), None | Some("md5")) => Ok(true),
        _ => Err(Failure::grammar("-c on|off -H md5")),
    }
}
