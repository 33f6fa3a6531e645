from .network import build_network as build_network
from .planning import NetworkPlan as NetworkPlan
from .planning import plan_network as plan_network
from .product import ProductBuild as ProductBuild
from .product import build_product as build_product
