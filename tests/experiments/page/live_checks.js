// SPDX-License-Identifier: BSD-3-Clause
// Answers in place of a program that is watched, and looks at what the page makes of them. `reports` are pages of
// one schedule and of two. Stands before the page's own script.
'use strict';

const wrong = [], check = (holds, what) => { if (!holds) wrong.push(what); };
const pages = reports.map(text => new TextDecoder().decode(Uint8Array.from(atob(text), c => c.charCodeAt(0))));
const now = (text, done) => ({text, done, all: 160, unit: 'samples', rate: '28.4', left: '12 s left', waits_for: '', loss: 1.25, losses_every: 1,
  losses: [[16, 2.5], [32, null], [done, 1.25]], evaluations: [[32, 2]]});
const recent = {letters: 'FBIWUR', timing: 'modelled', from: [1e6, 2e6], microbatches: 2, ranks: [
  [0, 0, 3, 0, 0, 5e5, 4e5, 0, 1, 1, 0, 4, 0, 0, 1e5, 9e5, 0, 1, 0, 0, 5, 0, 0, 1e5, 1e6, 0, 1], [0, 1, 5, 0, 0, 2e6, 1e6, 0, 1]]};
const told = {command: 'compare --watch', runs: ['gpipe', '1f1b'], report: '/r/report.html', ended: false};
const text = id => document.getElementById(id).textContent;
const page = () => document.getElementById('report').contentWindow;
let asked = 0, from = 0, to = 0;

// What the program says at each question, and what must be there before it answers.
const answers = [
  () => ({...told, over: [], version: 0, now: null, proves: 'gpipe'}),
  () => {
    check(text('state') === 'gpipe: its first steps are being proved.', 'a proof: ' + text('state'));
    return {...told, over: [], version: 0, now: now('gpipe', 48)};
  },
  () => {
    check(text('state') === 'gpipe: 48 of 160 samples, loss 1.2500, 28.4/s, 12 s left', 'how the run comes on: ' + text('state'));
    check(document.getElementById('report').hidden, 'no report before a run is over');
    check(!document.getElementById('losses').hidden, 'the losses are drawn');
    return {...told, over: ['finished'], version: 1, now: now('1f1b', 64)};
  },
  () => ({...told, over: ['finished'], version: 1, now: now('1f1b', 64), recent: {...recent, from: [0, 0], microbatches: 1}}),
  () => {
    check(document.querySelector('#recent canvas').dataset.drawn === '3', 'the last two minibatches are drawn, and no others');
    return {...told, over: ['finished'], version: 1, now: now('1f1b', 80), recent};
  },
  () => {
    check(page().shown && page().shown.length === 1, 'the report of one schedule');
    page().shown[0].show(1e6, 3e6);
    [from, to] = [page().shown[0].from, page().shown[0].to];
    page().scrollTo(0, 40);
    check(text('runs') === 'gpipe ✓ · 1f1b', 'the schedules: ' + text('runs'));
    const picture = document.querySelector('#recent canvas');
    check(picture && picture.dataset.drawn === '3', 'what ran last is drawn, from when on all of it is known');
    check(text('recent').includes('Times are modelled') && text('recent').endsWith('F forwardB backward'), 'and said: ' + text('recent'));
    return {...told, over: ['finished'], version: 1, now: now('1f1b', 96)};
  },
  () => {
    check(page().shown[0].from === from && page().shown[0].to === to, 'the same report keeps its zoom');
    return {...told, over: ['finished', 'failed'], version: 2, now: null};
  },
  () => null, // no answer
  () => {
    check(text('state').startsWith('The program does not answer'), 'a program that does not answer: ' + text('state'));
    return {...told, over: ['finished', 'failed'], version: 2, now: null, ended: true};
  }];

window.fetch = async path => {
  if (path === '/report.html') return {ok: true, text: async () => pages[document.getElementById('report').hidden ? 0 : 1]};
  const answer = answers[Math.min(asked, answers.length - 1)]();
  if (++asked > answers.length) check(false, 'nothing is asked after the end');
  if (!answer) throw new TypeError('no answer');
  return {ok: true, json: async () => answer};
};

setTimeout(() => {
  check(document.getElementById('recent').hidden, 'of a run that is over nothing is recent');
  check(asked === answers.length, `it asks every second: ${asked}`);
  check(page().shown.length === 2, 'the report of two schedules');
  check(page().shown[0].from === from && page().shown[0].to === to, 'a new report keeps the zoom');
  check(page().scrollY === 40, 'a new report keeps its place: ' + page().scrollY);
  check(text('runs') === 'gpipe ✓ · 1f1b (failed)', 'how they ended: ' + text('runs'));
  check(text('state') === 'The program has ended. The report is at /r/report.html', 'the end: ' + text('state'));
  document.title = wrong.length > 0 ? wrong.join('; ') : 'all hold';
}, 15000);
