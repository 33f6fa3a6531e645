"""The ticket and its file: format, container, codecs, masks and kinds. No other package knows the file format."""

from strongticket.ticket._ticket import Ticket as Ticket
from strongticket.ticket.format import CodedTensor as CodedTensor
from strongticket.ticket.format import block_digest as block_digest
from strongticket.ticket.format import choices_line as choices_line
from strongticket.ticket.format import chunks as chunks
from strongticket.ticket.format import code_mask as code_mask
from strongticket.ticket.format import packed_size as packed_size
from strongticket.ticket.format import recipe_text as recipe_text
from strongticket.ticket.format import tensor_checksum as tensor_checksum
from strongticket.ticket.kinds import CompareOptions as CompareOptions
from strongticket.ticket.kinds import Description as Description
from strongticket.ticket.kinds import Form as Form
from strongticket.ticket.kinds import Kind as Kind
from strongticket.ticket.kinds import TicketComparison as TicketComparison
from strongticket.ticket.summary import Summary as Summary
from strongticket.ticket.summary import Verification as Verification
from strongticket.ticket.summary import summarise as summarise
