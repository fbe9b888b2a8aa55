//! Completions, man pages and the Markdown reference: folds over the definitions in `args`.

use std::io::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::args::{Args, EXIT_STATUS, PATTERNS};
use crate::exit::CliError;

pub(crate) fn completions(
    shell: clap_complete::Shell,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut buffer = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "stook", &mut buffer);
    Ok(out.write_all(&buffer)?)
}

/// Writes stook.1 and one page for each command.
pub(crate) fn man_pages(folder: &Path) -> Result<(), CliError> {
    stook_sys::create_directory(folder)?;
    let mut root = Args::command();
    root.build();
    write_page(folder, "stook".to_owned(), root.clone())?;
    for (name, command) in commands(&root, "stook") {
        write_page(folder, name.replace(' ', "-"), command.clone())?;
    }
    Ok(())
}

/// Returns what is below a command, each with its whole name, such as `stook bench fs`.
fn commands<'a>(above: &'a Command, name: &str) -> Vec<(String, &'a Command)> {
    let shown = above
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let with_those_below = shown.flat_map(|command| {
        let name = format!("{name} {}", command.get_name());
        let below = commands(command, &name);
        std::iter::once((name, command)).chain(below)
    });
    with_those_below.collect()
}

fn write_page(folder: &Path, name: String, command: Command) -> Result<(), CliError> {
    let path = folder.join(format!("{name}.1"));
    // A page's name must live as long as the program: there are a dozen, each made once.
    let name: &'static str = name.leak();
    let section = section(&command);
    let mut command = command.name(name).display_name(name);
    if let Some((_, body)) = &section {
        command = command.after_long_help(body);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    if let Some((heading, _)) = section {
        // clap names it so, whatever it is about.
        let text = String::from_utf8_lossy(&page);
        page = text
            .replace(".SH EXTRA", &format!(".SH {}", heading.to_uppercase()))
            .into_bytes();
    }
    Ok(stook_sys::write_file(&path, &page)?)
}

/// Returns the heading and the text of what stands behind the options of a command.
fn section(command: &Command) -> Option<(String, String)> {
    let text = command.get_after_long_help()?.to_string();
    let (heading, body) = text.split_once(":\n")?;
    Some((heading.to_owned(), body.to_owned()))
}

/// Returns `docs/commands.md`.
pub(crate) fn markdown() -> String {
    let mut root = Args::command();
    root.build();
    let mut text = String::from(
        "# Commands\n\nMade by `stook reference` from the program's own definitions; do not edit.\n",
    );
    text.push_str("\n## Options of every command\n\n");
    push_options(
        &mut text,
        root.get_arguments().filter(|arg| arg.is_global_set()),
    );
    text.push_str(&format!("\n{}\n\n", EXIT_STATUS.replacen(":\n", ": ", 1)));
    text.push_str(
        "Environment: `STOOK_MD5_KERNEL`, one of `avx512`, `avx2`, `portable` and `scalar`, sets the instructions that \
         MD5s are taken with; without it they are the fastest that the processor has.\n",
    );
    let (heading, patterns) = PATTERNS.split_once(":\n").unwrap_or(("", PATTERNS));
    text.push_str(&format!("\n## {heading}\n\n{patterns}\n"));
    for (name, command) in commands(&root, "stook") {
        push_command(&mut text, &name, command);
    }
    text
}

fn push_command(text: &mut String, name: &str, command: &Command) {
    text.push_str(&format!("\n## {name}\n\n"));
    let about = command
        .get_long_about()
        .or_else(|| command.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    text.push_str(about.trim());
    let usage = command.clone().render_usage().to_string();
    text.push_str(&format!(
        "\n\n```\n{}\n```\n\n",
        usage.trim_start_matches("Usage: ").trim()
    ));
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
    push_options(text, command.get_arguments().filter(own));
    if let Some((heading, _)) = section(command) {
        text.push_str(&format!(
            "\nSee [{heading}](#{}).\n",
            heading.to_lowercase()
        ));
    }
}

fn push_options<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    text.push_str("| option | meaning |\n|---|---|\n");
    for argument in arguments {
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        text.push_str(&format!(
            "| `{}` | {} |\n",
            spelling(argument).replace('|', "\\|"),
            help.replace('|', "\\|")
        ));
    }
}

fn spelling(argument: &Arg) -> String {
    let values = argument
        .get_value_names()
        .map(|names| names.join(" "))
        .unwrap_or_default();
    let takes_value = argument.get_action().takes_values();
    match (argument.get_short(), argument.get_long()) {
        (None, None) if argument.is_required_set() => values,
        (None, None) => format!("[{values}]..."),
        (short, long) => {
            let short = short.map(|short| format!("-{short}"));
            let long = long.map(|long| format!("--{long}"));
            let names: Vec<String> = short.into_iter().chain(long).collect();
            let value = match (takes_value, argument.is_require_equals_set()) {
                (true, true) => format!("[={values}]"),
                (true, false) => format!(" {values}"),
                (false, _) => String::new(),
            };
            format!("{}{value}", names.join(", "))
        }
    }
}
