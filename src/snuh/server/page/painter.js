// Draws points on a canvas. The many small ones are written into the image pixel by pixel, which takes about
// 20 ms of one core for 100,000 of them, without a graphics card; the few large ones are circles.

export const FEW_HUES = 7; // easy to tell apart, and the steps of a scale
export const MAX_HUES = 21;
export const OTHER_HUE = MAX_HUES;
export const colourName = (hue, isScale) =>
  hue === OTHER_HUE ? "--hue-other" : `--${isScale ? "scale" : "hue"}-${hue + 1}`;
const OFFSETS = [0, 0.5]; // points are drawn at multiples of half a pixel

export class Painter {
  #colours = new Map();
  #stamps = { radius: 0, width: 0, half: 0, variants: [] };
  #image = null;
  #isScheduled = false;
  ratio = 1; // device pixels per CSS pixel
  highlighted = new Set(); // hits of the search
  selected = -1; // pointed at, or in the centre
  onlyHue = null; // the others fade
  picked = null; // a set of points that were selected with the lasso; the others fade
  lasso = []; // positions on the screen, while it is being drawn
  isScale = false; // hues are steps of a scale, not categories

  constructor(canvas, projection, hues) {
    Object.assign(this, { canvas, projection, hues, context: canvas.getContext("2d") });
  }

  /** Draw in the next frame, once for any number of calls. */
  requestDraw() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.draw();
    });
  }

  /** Read the colours again, after a change of the theme. */
  resetColours() {
    this.#colours.clear();
    this.requestDraw();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = Math.max(1, Math.round(clientWidth * this.ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * this.ratio));
    this.#image = null;
    this.projection.resize(clientWidth, clientHeight);
    this.requestDraw();
  }

  draw() {
    const { context, projection, ratio, highlighted, onlyHue, hues, picked, isScale } = this;
    const sizeFactor = Math.max(0.6, Math.min(1, projection.width / 800));
    const points = projection.x.length;
    const baseRadius = (points > 30_000 ? 1.2 : points > 3000 ? 1.8 : 2.8) * sizeFactor;
    const radius = Math.round(Math.min(5, baseRadius * projection.zoom ** 0.3) * 10) / 10;
    const isFaint = new Uint8Array(points); // 0 or 1
    if (picked || highlighted.size) isFaint.fill(1);
    if (picked) for (const point of picked) isFaint[point] = 0;
    else if (onlyHue !== null && !highlighted.size) isFaint.forEach((_, point) => (isFaint[point] = Number(hues[point] !== onlyHue)));
    this.#image ??= context.createImageData(this.canvas.width, this.canvas.height);
    new Uint32Array(this.#image.data.buffer).fill(packed(this.#channels("--surface")));
    if (isFaint.includes(1)) this.#scatter(radius * ratio, isFaint, 1, () => this.#channels("--point-faint"));
    this.#scatter(radius * ratio, isFaint, 0, (hue) => this.#channels(colourName(hue, isScale)));
    context.putImageData(this.#image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const point of highlighted)
      this.#drawCircle(point, radius + 3, this.#colour("--accent"), this.#colour("--surface"));
    this.#drawLasso();
    if (this.selected < 0) return;
    const colour = highlighted.has(this.selected) ? "--accent" : colourName(hues[this.selected], isScale);
    this.#drawCircle(this.selected, radius + 3, this.#colour(colour), this.#colour("--text"));
  }

  /** Copy the stamp of every point whose entry of `isFaint` is `included` into the image. */
  #scatter(radius, isFaint, included, colourOf) {
    const { projection, hues } = this;
    const { width, height, data } = this.#image;
    const pixels = new Uint32Array(data.buffer);
    const { half, variants } = this.#stampsFor(radius, width);
    const colours = Array.from({ length: MAX_HUES + 1 }, (_, hue) => packed(colourOf(hue)));
    const scale = projection.scale * this.ratio;
    const left = width / 2 - projection.centre.x * scale;
    const top = height / 2 + projection.centre.y * scale;
    const { x: xs, y: ys } = projection;
    for (let point = 0; point < xs.length; point += 1) {
      if (isFaint[point] !== included) continue;
      const x = xs[point] * scale + left;
      const y = top - ys[point] * scale;
      const column = Math.floor(x);
      const row = Math.floor(y);
      if (column < half || row < half || column >= width - half || row >= height - half) continue;
      const { inside, edge, alphas } = variants[(x - column < 0.5 ? 0 : 1) + (y - row < 0.5 ? 0 : 2)];
      const offset = row * width + column;
      const colour = colours[hues[point]];
      for (let index = 0; index < inside.length; index += 1) pixels[offset + inside[index]] = colour;
      for (let index = 0; index < edge.length; index += 1) {
        pixels[offset + edge[index]] = blend(pixels[offset + edge[index]], colour, alphas[index]);
      }
    }
  }

  /** The pixels that a point covers fully or partly, for its four subpixel offsets. */
  #stampsFor(radius, width) {
    if (this.#stamps.radius === radius && this.#stamps.width === width) return this.#stamps;
    const half = Math.ceil(radius + 1);
    const side = Array.from({ length: 2 * half + 1 }, (_, index) => index - half);
    const variants = OFFSETS.flatMap((down) =>
      OFFSETS.map((right) => {
        const covered = side.flatMap((y) =>
          side.map((x) => [
            y * width + x,
            Math.round(256 * (radius + 0.5 - Math.hypot(x - right, y - down))),
          ]),
        );
        const partial = covered.filter(([, alpha]) => alpha > 0 && alpha < 256);
        return {
          inside: Int32Array.from(
            covered.filter(([, alpha]) => alpha >= 256),
            ([offset]) => offset,
          ),
          edge: Int32Array.from(partial, ([offset]) => offset),
          alphas: Int32Array.from(partial, ([, alpha]) => alpha),
        };
      }),
    );
    this.#stamps = { radius, width, half, variants };
    return this.#stamps;
  }

  #drawLasso() {
    if (this.lasso.length < 2) return;
    this.context.beginPath();
    for (const { x, y } of this.lasso) this.context.lineTo(x, y);
    this.context.closePath();
    this.context.lineWidth = 2;
    this.context.strokeStyle = this.#colour("--accent");
    this.context.stroke();
  }

  #drawCircle(point, radius, inside, edge) {
    const { x, y } = this.projection.toScreen(point);
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.fillStyle = inside;
    this.context.fill();
    this.context.lineWidth = 2;
    this.context.strokeStyle = edge;
    this.context.stroke();
  }

  /** A colour of the current theme; the browser resolves it only as the colour of an element. */
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

/** A colour as image data: four bytes in native byte order. */
function packed([red, green, blue]) {
  return new Uint32Array(new Uint8Array([red, green, blue, 255]).buffer)[0];
}

/** Blend `over` onto `under` with an alpha from 0 to 256; two channels are mixed at a time. */
function blend(under, over, alpha) {
  const odd =
    ((((over >>> 8) & 0xff00ff) * alpha + ((under >>> 8) & 0xff00ff) * (256 - alpha)) & 0xff00ff00) >>> 0;
  const even = ((((over & 0xff00ff) * alpha + (under & 0xff00ff) * (256 - alpha)) >>> 8) & 0xff00ff) >>> 0;
  return (odd | even) >>> 0;
}
