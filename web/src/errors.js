/** A file that is not a valid ticket, or a ticket that this reader cannot run. */
export class TicketError extends Error {
  /** @param {string} message what is wrong */
  constructor(message) {
    super(message);
    this.name = "TicketError";
  }
}
