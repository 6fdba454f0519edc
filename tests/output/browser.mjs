// browser.mjs PAGE DIRECTORY: shows the page in headless Chromium, by its own protocol on pipes; light and dark, 360 to 1920 pixels wide;
// sorts a table, zooms into the flame graph and searches by keys only. Prints what it finds; screenshots go to DIRECTORY.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { resolve } from 'node:path';

const [page, directory] = process.argv.slice(2).map(path => resolve(path));
const chromium = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', `--user-data-dir=${directory}/profile`,
  '--remote-debugging-pipe', 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const waiting = new Map();
let number = 0, rest = '', requests = 0, session;
const loaded = [];
chromium.stdio[4].on('data', data => {
  const parts = (rest + data).split('\0');
  rest = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      message.error ? reject(new Error(message.error.message)) : resolve(message.result);
    } else if (message.method === 'Network.requestWillBeSent' && !message.params.request.url.startsWith('file:')) {
      requests += 1;
    } else if (message.method === 'Page.loadEventFired') {
      loaded.splice(0).forEach(done => done());
    }
  }
});
const call = (method, params = {}) => new Promise((resolve, reject) => {
  waiting.set(++number, { resolve, reject });
  chromium.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId: session }) + '\0');
});
const value = async expression => (await call('Runtime.evaluate', { expression, returnByValue: true })).result.value;
const key = async (name, code) => {
  for (const type of ['keyDown', 'keyUp']) {
    await call('Input.dispatchKeyEvent', { type, key: name, code: name, windowsVirtualKeyCode: code, text: type === 'keyDown' && name === 'Enter' ? '\r' : undefined });
  }
};
// Mean brightness of a PNG, 0 to 255, and the number of different colours of every 16th pixel.
const look = png => {
  let at = 8, width, height, channels;
  const parts = [];
  while (at < png.length) {
    const size = png.readUInt32BE(at), kind = png.toString('latin1', at + 4, at + 8), body = png.subarray(at + 8, at + 8 + size);
    if (kind === 'IHDR') [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    if (kind === 'IDAT') parts.push(body);
    at += size + 12;
  }
  const raw = inflateSync(Buffer.concat(parts)), stride = width * channels;
  let before = Buffer.alloc(stride), sum = 0, count = 0;
  const colours = new Set();
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)], row = Buffer.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let x = 0; x < stride; x += 1) {
      const a = x >= channels ? row[x - channels] : 0, b = before[x], c = x >= channels ? before[x - channels] : 0;
      const p = a + b - c, [pa, pb, pc] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)];
      row[x] += [0, a, b, (a + b) >> 1, pa <= pb && pa <= pc ? a : pb <= pc ? b : c][filter];
    }
    for (let x = 0; x < stride; x += channels * 16) {
      sum += (row[x] + row[x + 1] + row[x + 2]) / 3;
      count += 1;
      colours.add(row.readUIntBE(x, 3));
    }
    before = row;
  }
  return { brightness: sum / count, colours: colours.size };
};

try {
  const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
  session = (await call('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  await Promise.all(['Page.enable', 'Network.enable', 'Runtime.enable'].map(method => call(method)));
  const open = async scripts => {
    await call('Emulation.setScriptExecutionDisabled', { value: !scripts });
    const done = new Promise(resolve => loaded.push(resolve));
    await call('Page.navigate', { url: `file://${page}` });
    await done;
  };
  for (const scheme of ['light', 'dark']) {
    for (const width of [360, 768, 1920]) {
      await call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
      await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      await open(true);
      const shot = Buffer.from((await call('Page.captureScreenshot', { captureBeyondViewport: true })).data, 'base64');
      writeFileSync(`${directory}/${scheme}-${width}.png`, shot);
      const { brightness, colours } = look(shot);
      const wide = await value('document.documentElement.scrollWidth');
      console.log(`${scheme} ${width}: ${wide <= width ? 'fits' : `is ${wide} wide`}, ${brightness > 128 ? 'bright' : 'dark'}, ${colours > 5 ? 'has colours' : 'is empty'}`);
    }
  }
  await open(false);
  // Without scripts the text of the page is there.
  const tree = JSON.stringify((await call('DOMSnapshot.captureSnapshot', { computedStyles: [] })).strings);
  console.log(`without scripts: ${['Stacks', 'vfs_read', 'Cost of the probes'].filter(text => tree.includes(text)).length} of 3`);
  await open(true);
  // From the top by Tab only: the first header of a table is reached and sorts it, up and down.
  const tab = async (wanted, most = 200) => {
    for (let steps = 0; steps < most; steps += 1) {
      await key('Tab', 9);
      if (await value(`document.activeElement.matches(${JSON.stringify(wanted)})`)) return true;
    }
    return false;
  };
  await value('document.body.focus()');
  console.log(`search reached: ${await tab('#search')}`);
  await call('Input.insertText', { text: 'vfs_read' });
  console.log(`search: ${await value('document.getElementById("found").textContent')}`);
  console.log(`flame reached: ${await tab('svg.f')}`);
  await key('ArrowUp', 38);
  await key('ArrowUp', 38);
  await key('Enter', 13);
  const frame = await value('document.activeElement.getAttribute("aria-label")');
  console.log(`zoomed: ${frame.split(':')[0]} ${await value('document.activeElement.getAttribute("width") / 1200')}`);
  await key('Escape', 27);
  console.log(`all: ${await value('document.querySelector("svg.f").getAttribute("width") / 1200')}`);
  console.log(`table reached: ${await tab('th button')}`);
  const column = 'const t = document.activeElement.closest("table"), i = document.activeElement.closest("th").cellIndex; [...t.tBodies[0].rows].map(r => r.children[i].dataset.v ?? r.children[i].textContent)';
  let sorted = [];
  for (const down of [true, false]) {
    await key('Enter', 13);
    const cells = await value(`{${column}}`);
    const ordered = [...cells].sort((a, b) => isNaN(a) ? (a < b ? -1 : 1) : a - b);
    sorted.push(JSON.stringify(cells) === JSON.stringify(down ? ordered.reverse() : ordered));
  }
  console.log(`sorted: ${sorted}`);
  console.log(`requests: ${requests}`);
} finally {
  chromium.kill();
}
