// A provider of promptfoo that answers at once, or after `config.milliseconds`.
export default class Provider {
  constructor(options) {
    this.milliseconds = options?.config?.milliseconds ?? 0;
  }
  id() {
    return 'agent';
  }
  async callApi(prompt) {
    if (this.milliseconds) await new Promise((done) => setTimeout(done, this.milliseconds));
    return { output: prompt.replace(/^Say /, '') };
  }
}
