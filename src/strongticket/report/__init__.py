"""A ticket -> one offline page that runs it."""

from strongticket.report.ticket_page import write_ticket_page as write_ticket_page
