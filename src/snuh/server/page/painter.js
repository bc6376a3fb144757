// Draws points on a canvas. The many small ones are written into the picture pixel by pixel, which takes about a
// millisecond for 10,000 of them wherever the page runs; the few large ones are circles.

const HUES = ["--hue-1", "--hue-2", "--hue-3", "--hue-4", "--hue-5", "--hue-6", "--hue-7", "--hue-other"];
export const MOST_HUES = HUES.length - 1;
const HALVES = [0, 0.5]; // a point stands at a whole or a half pixel

export class Painter {
  #colours = new Map();
  #stamps = { radius: 0, width: 0, half: 0, of: [] };
  #picture = null;
  #waiting = false;
  ratio = 1; // pixels of the screen for one of the page
  lit = new Set(); // found by the search
  chosen = -1; // pointed at, or in the middle
  only = null; // a hue, the others fade

  constructor(canvas, plane, hues) {
    Object.assign(this, { canvas, plane, hues, pen: canvas.getContext("2d") });
  }

  /** Draw at the next frame; many calls are one drawing. */
  ask() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.draw();
    });
  }

  /** The theme changed. */
  forget() {
    this.#colours.clear();
    this.ask();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = Math.max(1, Math.round(clientWidth * this.ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * this.ratio));
    this.#picture = null;
    this.plane.resize(clientWidth, clientHeight);
    this.ask();
  }

  draw() {
    const { pen, plane, ratio, lit, only, hues } = this;
    const usual = (plane.x.length > 3000 ? 1.8 : 2.8) * Math.max(0.6, Math.min(1, plane.width / 800));
    const radius = Math.round(Math.min(5, usual * plane.zoom ** 0.3) * 10) / 10;
    const fades = (point) => lit.size > 0 || (only !== null && hues[point] !== only);
    this.#picture ??= pen.createImageData(this.canvas.width, this.canvas.height);
    new Uint32Array(this.#picture.data.buffer).fill(packed(this.#channels("--surface")));
    this.#scatter(radius * ratio, fades, () => this.#channels("--point-faint"));
    this.#scatter(
      radius * ratio,
      (point) => !fades(point),
      (hue) => this.#channels(HUES[hue]),
    );
    pen.putImageData(this.#picture, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const point of lit)
      this.#dot(point, radius + 3, this.#colour("--accent"), this.#colour("--surface"));
    if (this.chosen < 0) return;
    const own = lit.has(this.chosen) ? "--accent" : HUES[hues[this.chosen]];
    this.#dot(this.chosen, radius + 3, this.#colour(own), this.#colour("--text"));
  }

  /** Stamp every point that is wanted into the picture. */
  #scatter(radius, isWanted, colourOf) {
    const { plane, hues } = this;
    const { width, height, data } = this.#picture;
    const pixels = new Uint32Array(data.buffer);
    const { half, of } = this.#stampsOf(radius, width);
    const colours = HUES.map((_, hue) => packed(colourOf(hue)));
    const scale = plane.scale * this.ratio;
    const left = width / 2 - plane.centre.x * scale;
    const top = height / 2 + plane.centre.y * scale;
    for (let point = 0; point < plane.x.length; point += 1) {
      const x = plane.x[point] * scale + left;
      const y = top - plane.y[point] * scale;
      const column = Math.floor(x);
      const row = Math.floor(y);
      if (column < half || row < half || column >= width - half || row >= height - half || !isWanted(point))
        continue;
      const { inside, edge, shares } = of[(x - column < 0.5 ? 0 : 1) + (y - row < 0.5 ? 0 : 2)];
      const place = row * width + column;
      const colour = colours[hues[point]];
      for (let number = 0; number < inside.length; number += 1) pixels[place + inside[number]] = colour;
      for (let number = 0; number < edge.length; number += 1) {
        pixels[place + edge[number]] = blend(pixels[place + edge[number]], colour, shares[number]);
      }
    }
  }

  /** The pixels that a point covers wholly or in part, for the four ways in which it can stand on them. */
  #stampsOf(radius, width) {
    if (this.#stamps.radius === radius && this.#stamps.width === width) return this.#stamps;
    const half = Math.ceil(radius + 1);
    const side = Array.from({ length: 2 * half + 1 }, (_, number) => number - half);
    const of = HALVES.flatMap((down) =>
      HALVES.map((right) => {
        const covered = side.flatMap((y) =>
          side.map((x) => [
            y * width + x,
            Math.round(256 * (radius + 0.5 - Math.hypot(x - right, y - down))),
          ]),
        );
        const parts = covered.filter(([, share]) => share > 0 && share < 256);
        return {
          inside: Int32Array.from(
            covered.filter(([, share]) => share >= 256),
            ([place]) => place,
          ),
          edge: Int32Array.from(parts, ([place]) => place),
          shares: Int32Array.from(parts, ([, share]) => share),
        };
      }),
    );
    this.#stamps = { radius, width, half, of };
    return this.#stamps;
  }

  #dot(point, radius, inside, edge) {
    const { x, y } = this.plane.toScreen(point);
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, 2 * Math.PI);
    this.pen.fillStyle = inside;
    this.pen.fill();
    this.pen.lineWidth = 2;
    this.pen.strokeStyle = edge;
    this.pen.stroke();
  }

  /** A colour of the theme of now; only as the colour of an element does the browser work it out. */
  #colour(name) {
    if (!this.#colours.has(name)) {
      this.canvas.style.color = `var(${name})`;
      this.#colours.set(name, getComputedStyle(this.canvas).color);
    }
    return this.#colours.get(name);
  }

  #channels(name) {
    return this.#colour(name)
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number);
  }
}

/** A colour as a picture holds it: four bytes, in the order of this machine. */
function packed([red, green, blue]) {
  return new Uint32Array(new Uint8Array([red, green, blue, 255]).buffer)[0];
}

/** A part of one colour, of 256 parts, over another; the bytes are mixed two at a time. */
function blend(under, over, share) {
  const odd =
    ((((over >>> 8) & 0xff00ff) * share + ((under >>> 8) & 0xff00ff) * (256 - share)) & 0xff00ff00) >>> 0;
  const even = ((((over & 0xff00ff) * share + (under & 0xff00ff) * (256 - share)) >>> 8) & 0xff00ff) >>> 0;
  return (odd | even) >>> 0;
}
