/** A file that is not a valid ticket, or a ticket that this reader cannot run. */
export class TicketError extends Error {
  /** @param {string} message what is wrong */
  constructor(message) {
    super(message);
    this.name = "TicketError";
  }
}

/** A value of a file in an error: JSON, whole numbers of any size too. @param {any} value @returns {string} */
export const shown = (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? String(each) : each));
