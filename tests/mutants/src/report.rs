//! The table by file, and the mutants that lived.

use crate::runner::Verdict;
use crate::{Mutant, tree};
use std::collections::BTreeMap;

/// Mutants that change nothing a test could see, each with its reason: `file | change | the line's code | why`.
const EQUIVALENT: &str = include_str!("../equivalent.txt");

/// Returns the table and the survivors as text, and how many of 100 were caught; equivalent ones do not count.
pub fn write(mutants: &[Mutant], verdicts: &[(usize, Verdict)]) -> (String, f64) {
    let equivalent: Vec<Vec<&str>> = EQUIVALENT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(" | ").map(str::trim).collect())
        .collect();
    let mut files: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut lived = Vec::new();
    for (id, verdict) in verdicts {
        let mutant = &mutants[*id];
        let known = equivalent.iter().any(|row| row.starts_with(&[&mutant.file, &mutant.change, &mutant.code]));
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
            lived.push(format!("{how:9} {mutant}: {}", mutant.code));
        }
    }
    let mut text = String::from(
        "| file | caught | timed out | missed | unreached | equivalent | rate |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut all = [0; 5];
    for (file, counts) in &files {
        text += &row(file, counts);
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let mut folders: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (file, counts) in &files {
        let sum = folders.entry(tree::folder(file)).or_default();
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    for (folder, sum) in &folders {
        text += &row(&format!("**{folder}**"), sum);
    }
    text += &row("**all**", &all);
    lived.sort();
    for line in lived {
        text += &format!("\n    {line}");
    }
    text.push('\n');
    (text, rate(&all))
}

fn row(name: &str, counts: &[usize; 5]) -> String {
    let [caught, timed_out, missed, unreached, equivalent] = counts;
    format!("| {name} | {caught} | {timed_out} | {missed} | {unreached} | {equivalent} | {:.0} % |\n", rate(counts))
}

fn rate(counts: &[usize; 5]) -> f64 {
    let caught = counts[0] + counts[1];
    100.0 * caught as f64 / (caught + counts[2] + counts[3]).max(1) as f64
}
