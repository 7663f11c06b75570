// A browser for the pages of as.mjs: it visits a URL, follows redirects, and sends each form it finds, as the user ann.
//   node browser.mjs URL
// VISITS names a file that gets a line for each visit. With DENY=1 the user gives up at the first page.
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Visits `start` and logs in, or gives up with `denies`. */
export async function browse(start, denies = false) {
  let url = new URL(start);
  const { origin } = url;
  const cookies = new Map();
  let body;

  // Login and consent take 8 pages; a server that sends in circles is left.
  for (let page = 0; page < 20; page += 1) {
    const headers = url.origin === origin ? { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') } : {};
    const method = body ? 'POST' : 'GET';
    const answer = await fetch(url, { method, body, headers, redirect: 'manual', signal: AbortSignal.timeout(60_000) });
    for (const line of url.origin === origin ? answer.headers.getSetCookie() : []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    body = undefined;
    const text = await answer.text();
    const form = /<form[^>]*action="([^"]*)"[^>]*>(.*?)<\/form>/s.exec(text);
    const next = answer.headers.get('location') ?? (denies ? /href="([^"]*\/abort)"/.exec(text)?.[1] : form?.[1]);
    if (!next) break;
    if (!answer.headers.has('location') && !denies) {
      body = new URLSearchParams({ login: 'ann', password: 'any' });
      for (const [input] of form[2].matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
        body.append(/name="([^"]*)"/.exec(input)[1], /value="([^"]*)"/.exec(input)[1]);
      }
    }
    url = new URL(next, url);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.env.VISITS) appendFileSync(process.env.VISITS, `${process.argv[2]}\n`);
  await browse(process.argv[2], process.env.DENY === '1');
}
