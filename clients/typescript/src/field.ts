// Paths of fields: `data.items[0].label`, and `data["a.b"]` for keys that contain a dot, a bracket or a quote.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Step = string | number;

const STEP = /\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|\.?([^.[\]"]+)/y;

/** `data.items[0].name` as `["data", "items", 0, "name"]`. */
export function stepsOf(field: string): Step[] {
  const steps: Step[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < field.length) {
    const found = STEP.exec(field);
    if (found === null) throw new RangeError(`invalid field path ${JSON.stringify(field)}`);
    const [, quoted, index, name] = found;
    if (quoted !== undefined) steps.push(JSON.parse(`"${quoted}"`) as string);
    else if (index !== undefined) steps.push(Number(index));
    else if (name !== undefined) steps.push(name);
  }
  if (steps.length === 0) throw new RangeError("empty field path");
  return steps;
}

/** The value at this path, or `undefined`. */
export function get(value: Json | undefined, steps: Step[]): Json | undefined {
  for (const step of steps) {
    if (typeof step === "number") value = Array.isArray(value) ? value[step] : undefined;
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value;
}

/** Sets a value and creates the containers on its path. A list grows by one element at a time. */
export function put(root: Json, steps: Step[], value: Json): void {
  let holder = root;
  for (const [at, step] of steps.entries()) {
    const following = steps[at + 1];
    if (following === undefined) return set(holder, step, value);
    const child = get(holder, [step]);
    const wanted = typeof following === "number" ? Array.isArray(child) : isObject(child);
    if (!wanted) set(holder, step, typeof following === "number" ? [] : {});
    holder = get(holder, [step]) as Json;
  }
}

function set(holder: Json, step: Step, value: Json): void {
  if (typeof step === "number") {
    const list = holder as Json[];
    if (step > list.length) throw new RangeError("list index out of order");
    list[step] = value;
  } else {
    // A key may have the name of a property of every object; it is still data.
    Object.defineProperty(holder, step, { value, enumerable: true, configurable: true, writable: true });
  }
}

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
