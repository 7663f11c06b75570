//! The table by file, and the mutants that lived.

use crate::Mutant;
use crate::runner::Verdict;
use std::collections::BTreeMap;
use std::path::Path;

/// Mutants that change nothing a test could see, each with its reason: `file | change | the line's code | why`.
const EQUIVALENT: &str = include_str!("../equivalent.txt");

/// Prints the table and the survivors. Returns how many of 100 were caught; equivalent ones do not count.
pub fn write(root: &Path, mutants: &[Option<Mutant>], verdicts: &[(usize, Verdict)]) -> f64 {
    let equivalent: Vec<Vec<&str>> = EQUIVALENT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(" | ").map(str::trim).collect())
        .collect();
    let mut files: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut lived = Vec::new();
    for (id, verdict) in verdicts {
        let Some(mutant) = &mutants[*id] else { continue };
        let text = std::fs::read_to_string(root.join(&mutant.file)).unwrap_or_default();
        let code = text.lines().nth(mutant.line - 1).unwrap_or_default().trim().to_owned();
        let known = equivalent.iter().any(|row| row.starts_with(&[&mutant.file, &mutant.change, &code]));
        let column = match verdict {
            Verdict::Caught => 0,
            Verdict::TimedOut => 1,
            _ if known => 4,
            Verdict::Missed => 2,
            Verdict::Unreached => 3,
        };
        files.entry(&mutant.file).or_default()[column] += 1;
        if column == 2 || column == 3 {
            let how = if column == 2 { "missed" } else { "unreached" };
            lived.push(format!("{how:9} {}:{} {}: {code}", mutant.file, mutant.line, mutant.change));
        }
    }
    println!(
        "\n| file | caught | timed out | missed | unreached | equivalent | rate |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    let mut all = [0; 5];
    for (file, counts) in &files {
        print_row(file, counts);
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    print_row("**all**", &all);
    lived.sort();
    println!("\n{}", lived.join("\n"));
    rate(&all)
}

fn print_row(name: &str, counts: &[usize; 5]) {
    let [caught, timed_out, missed, unreached, equivalent] = counts;
    println!("| {name} | {caught} | {timed_out} | {missed} | {unreached} | {equivalent} | {:.0} % |", rate(counts));
}

fn rate(counts: &[usize; 5]) -> f64 {
    let caught = counts[0] + counts[1];
    100.0 * caught as f64 / (caught + counts[2] + counts[3]).max(1) as f64
}
